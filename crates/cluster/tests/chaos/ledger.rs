//! The runs of all tasks, as their workers noted them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brigade_testkit::pause;

/// Number of bytes of a run.
pub(crate) const RECORD: usize = size_of::<u32>();

/// Anything that lets no task run for this time counts as a hang. Servers that find no leader are
/// restarted before, and an election takes up to 15 s on a quiet machine.
pub(crate) const STALL: Duration = Duration::from_secs(180);

/// Time between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The files in which each host has its runs.
#[derive(Debug)]
pub(crate) struct Ledger {
    files: Vec<PathBuf>,
}

impl Ledger {
    pub(crate) fn new(files: impl Iterator<Item = PathBuf>) -> Self {
        Self { files: files.collect() }
    }

    /// Returns the number of runs that have begun so far.
    pub(crate) fn runs(&self) -> u64 {
        let length = |file| fs::metadata(file).map_or(0, |metadata| metadata.len());
        self.files.iter().map(length).sum::<u64>() / RECORD as u64
    }

    /// Waits until a number of runs has begun, as long as there is progress.
    pub(crate) fn wait_for(&self, runs: u64) {
        self.wait_while_runs_begin(&format!("run {runs} begins"), || self.runs() >= runs);
    }

    /// Waits for a condition, as long as there is progress.
    pub(crate) fn wait_while_runs_begin(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let (mut last, mut since) = (self.runs(), Instant::now());
        while !condition() {
            let runs = self.runs();
            if runs != last {
                (last, since) = (runs, Instant::now());
            }
            assert!(since.elapsed() < STALL, "no run begins after {runs}, waiting until {what}");
            pause(LOOK_AGAIN);
        }
    }

    /// Returns how often each of `tasks` tasks ran.
    pub(crate) fn counts(&self, tasks: u32) -> Vec<u32> {
        let mut counts = vec![0; tasks as usize];
        for file in &self.files {
            // A host that got no task has no file.
            let bytes = fs::read(file).unwrap_or_default();
            let (records, rest) = bytes.as_chunks::<RECORD>();
            assert!(rest.is_empty(), "a run is cut off in {}", file.display());
            for record in records {
                counts[u32::from_le_bytes(*record) as usize] += 1;
            }
        }
        counts
    }
}
