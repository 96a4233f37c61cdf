//! Giving finished jobs out in the order in which they were taken.

use std::collections::{BTreeMap, BTreeSet};

use brigade::runner::{Captured, Outcome};

/// Holds finished jobs back until all before them have finished.
#[derive(Debug)]
pub(crate) struct Order {
    unfinished: BTreeSet<u64>,
    held: BTreeMap<u64, Outcome>,
    /// The bytes of the held jobs' outputs.
    bytes: usize,
    files: usize,
    most_files: usize,
}

/// How many finished jobs may wait for one before them; then no more are started until it has finished, or memory would
/// grow with the list.
const MOST_HELD: usize = 4096;
/// The same, by what their outputs take in memory. Those that take more are in files, which are counted as well.
const MOST_BYTES: usize = 64 << 20;

impl Order {
    pub(crate) fn new(most_files: usize) -> Self {
        let (unfinished, held) = (BTreeSet::new(), BTreeMap::new());
        Self { unfinished, held, bytes: 0, files: 0, most_files }
    }

    /// A job was taken.
    pub(crate) fn taken(&mut self, number: u64) {
        self.unfinished.insert(number);
    }

    /// A job has finished. Answers those whose turn it is.
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

    /// Those that still wait, when nothing more will finish.
    pub(crate) fn rest(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// Whether no more jobs should be taken for now.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= MOST_HELD || self.bytes >= MOST_BYTES || self.files >= self.most_files
    }
}

/// The memory and the files of a job's outputs.
pub(crate) fn costs(outcome: &Outcome) -> (usize, usize) {
    let [first, second] = [&outcome.stdout, &outcome.stderr].map(Captured::costs);
    (first.0 + second.0, usize::from(first.1) + usize::from(second.1))
}
