//! Puts finished jobs back into the order in which they were taken.

use std::collections::{BTreeMap, BTreeSet};

use brigade::runner::{Captured, Outcome};

/// Holds finished jobs back until all jobs before them have finished.
#[derive(Debug)]
pub(crate) struct ReorderBuffer {
    unfinished: BTreeSet<u64>,
    held: BTreeMap<u64, Outcome>,
    /// The bytes of the held jobs' outputs.
    bytes: usize,
    files: usize,
    most_files: usize,
    is_bounded: bool,
}

/// Maximum number of finished jobs held back. At this number no more jobs start until an earlier
/// one has finished; otherwise memory use would grow with the list.
const MAX_HELD: usize = 4096;
/// Maximum memory of held outputs. Larger outputs are in files, which have a limit of their own.
const MAX_BYTES: usize = 64 << 20;

impl ReorderBuffer {
    pub(crate) fn new(most_files: usize) -> Self {
        let (unfinished, held) = (BTreeSet::new(), BTreeMap::new());
        Self { unfinished, held, bytes: 0, files: 0, most_files, is_bounded: true }
    }

    /// Lets any number of jobs be held, because they wait for each other to start.
    #[must_use]
    pub(crate) fn unbounded(self) -> Self {
        Self { is_bounded: false, ..self }
    }

    /// Records that a job was taken.
    pub(crate) fn taken(&mut self, number: u64) {
        self.unfinished.insert(number);
    }

    /// Records that a job has finished. Returns the jobs whose turn has come.
    pub(crate) fn finished(&mut self, outcome: Outcome) -> Vec<Outcome> {
        self.unfinished.remove(&outcome.number);
        let (bytes, files) = costs(&outcome);
        self.bytes += bytes;
        self.files += files;
        self.held.insert(outcome.number, outcome);
        let mut turn = Vec::new();
        while let Some(entry) = self.held.first_entry() {
            if self.unfinished.first().is_some_and(|first| first < entry.key()) {
                break;
            }
            let outcome = entry.remove();
            let (bytes, files) = costs(&outcome);
            self.bytes -= bytes;
            self.files -= files;
            turn.push(outcome);
        }
        turn
    }

    /// Returns the jobs that are still held back. Call this when no more jobs will finish.
    pub(crate) fn rest(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// Returns `true` if no more jobs should be taken for now.
    pub(crate) fn is_full(&self) -> bool {
        let is_full =
            self.held.len() >= MAX_HELD || self.bytes >= MAX_BYTES || self.files >= self.most_files;
        self.is_bounded && is_full
    }
}

/// Returns the memory in bytes and the number of files of a job's outputs.
pub(crate) fn costs(outcome: &Outcome) -> (usize, usize) {
    let [first, second] = [&outcome.stdout, &outcome.stderr].map(Captured::costs);
    (first.0 + second.0, usize::from(first.1) + usize::from(second.1))
}
