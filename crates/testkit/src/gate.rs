//! Tasks that wait until the test lets them go.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::wait::{BOUND, wait_until};

/// Holds every task that runs [`pass`] until it is opened, or dropped.
///
/// Declare it after the pool: then a test that fails drops it first, and the pool's drop does not wait for
/// tasks that wait for the gate.
#[derive(Debug)]
pub struct Gate {
    folder: TempDir,
}

/// The argument of a task that stops at a gate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    folder: PathBuf,
    number: u64,
}

/// A task function: reports its arrival, waits until the gate is open and returns the number of its pass.
///
/// # Panics
/// When the gate is not opened for a minute.
#[expect(clippy::needless_pass_by_value, reason = "a task function takes its argument by value")]
pub fn pass(pass: Pass) -> u64 {
    let arrival = pass.folder.join(format!("arrival-{}", pass.number));
    // A gate that is gone lets everybody through.
    let _ = fs::write(arrival, b"");
    wait_until("the test to open its gate", Duration::from_secs(60), || {
        !pass.folder.exists() || pass.folder.join("open").exists()
    });
    pass.number
}

impl Gate {
    /// A closed gate.
    ///
    /// # Panics
    /// When no temporary folder can be made.
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("a folder for the gate") }
    }

    /// An argument for [`pass`]; each has a number of its own.
    pub fn pass(&self, number: u64) -> Pass {
        Pass { folder: self.folder.path().to_owned(), number }
    }

    /// Lets all tasks go on, those that arrive later too.
    ///
    /// # Panics
    /// When the gate cannot be written to.
    pub fn open(&self) {
        fs::write(self.folder.path().join("open"), b"")
            .expect("the gate's folder can be written to");
    }

    /// How many different passes have arrived.
    ///
    /// # Panics
    /// When the gate cannot be read.
    pub fn arrivals(&self) -> usize {
        let entries = fs::read_dir(self.folder.path()).expect("the gate's folder can be read");
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("arrival-"))
            .count()
    }

    /// Returns when so many passes have arrived.
    #[track_caller]
    pub fn wait_for_arrivals(&self, count: usize) {
        wait_until("tasks to arrive at the gate", BOUND, || self.arrivals() >= count);
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
