//! Giving finished jobs out in the order in which they were taken.

use std::collections::{BTreeMap, BTreeSet};

use brigade::runner::Outcome;

/// Holds finished jobs back until all before them have finished.
#[derive(Debug, Default)]
pub(crate) struct Order {
    unfinished: BTreeSet<u64>,
    held: BTreeMap<u64, Outcome>,
}

/// How many finished jobs may wait for one before them; then no more are started until it has finished, or memory would
/// grow with the list.
const MOST_HELD: usize = 4096;

impl Order {
    /// A job was taken.
    pub(crate) fn taken(&mut self, number: u64) {
        self.unfinished.insert(number);
    }

    /// A job has finished. Answers those whose turn it is.
    pub(crate) fn finished(&mut self, outcome: Outcome) -> Vec<Outcome> {
        self.unfinished.remove(&outcome.number);
        self.held.insert(outcome.number, outcome);
        let mut turn = Vec::new();
        while let Some(entry) = self.held.first_entry() {
            if self.unfinished.first().is_some_and(|first| first < entry.key()) {
                break;
            }
            turn.push(entry.remove());
        }
        turn
    }

    /// Those that still wait, when nothing more will finish.
    pub(crate) fn rest(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.held).into_values().collect()
    }

    /// Whether no more jobs should be taken for now.
    pub(crate) fn is_full(&self) -> bool {
        self.held.len() >= MOST_HELD
    }
}
