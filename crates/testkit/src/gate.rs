//! Holds tasks until the test lets them go.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::{BOUND, wait_until};

/// Holds every task that runs [`pass`] until it is opened or dropped.
///
/// Declare it after the pool: then a failing test drops it first, and dropping the pool does not
/// wait for tasks that wait at the gate.
#[derive(Debug)]
pub struct Gate {
    /// Contains the folder that tasks look at.
    parent: TempDir,
}

/// The argument of a task that waits at a gate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pass {
    folder: PathBuf,
    number: u64,
}

/// A task function: reports its arrival, waits until the gate is open, and returns the number of
/// its pass.
///
/// # Panics
/// Panics if the gate is not opened within three times [`BOUND`].
#[expect(clippy::needless_pass_by_value, reason = "a task function takes its argument by value")]
pub fn pass(pass: Pass) -> u64 {
    let arrival = pass.folder.join(format!("arrival-{}", pass.number));
    // A gate that was dropped lets every task through.
    let _ = fs::write(arrival, b"");
    wait_until("the test to open its gate", 3 * BOUND, || {
        !pass.folder.exists() || pass.folder.join("open").exists()
    });
    pass.number
}

impl Gate {
    /// Creates a closed gate.
    ///
    /// # Panics
    /// Panics if no temporary folder can be created.
    pub fn new() -> Self {
        let parent = TempDir::new().expect("a folder for the gate");
        fs::create_dir(parent.path().join("gate")).expect("a folder in a new one");
        Self { parent }
    }

    fn folder(&self) -> PathBuf {
        self.parent.path().join("gate")
    }

    /// Returns an argument for [`pass`]. Each needs a different number.
    pub fn pass(&self, number: u64) -> Pass {
        Pass { folder: self.folder(), number }
    }

    /// Lets all tasks go on, including those that arrive later.
    ///
    /// # Panics
    /// Panics if the gate cannot be written to.
    pub fn open(&self) {
        fs::write(self.folder().join("open"), b"").expect("the gate's folder can be written to");
    }

    /// Returns the number of different passes that have arrived.
    ///
    /// # Panics
    /// Panics if the gate cannot be read.
    pub fn arrivals(&self) -> usize {
        let entries = fs::read_dir(self.folder()).expect("the gate's folder can be read");
        entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("arrival-"))
            .count()
    }

    /// Blocks until `count` passes have arrived.
    #[track_caller]
    pub fn wait_for_arrivals(&self, count: usize) {
        wait_until("tasks to arrive at the gate", BOUND, || self.arrivals() >= count);
    }
}

impl Drop for Gate {
    /// Takes the folder away in one step. While its files are removed one by one, a task may arrive
    /// and add another one: the folder stays, `open` is gone, and all later tasks wait.
    fn drop(&mut self) {
        // It fails only if the folder is gone already.
        let _ = fs::rename(self.folder(), self.parent.path().join("gone"));
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_gate_lets_tasks_through_that_arrive_meanwhile() {
        for _ in 0..200 {
            let gate = Gate::new();
            gate.open();
            let passes: Vec<_> = (0..20).map(|number| gate.pass(number)).collect();
            let folder = gate.folder();
            std::thread::scope(|scope| {
                scope.spawn(|| drop(gate));
                for at in passes {
                    pass(at);
                }
            });
            assert!(!folder.exists(), "a task that arrives now would wait");
        }
    }
}
