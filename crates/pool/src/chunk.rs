//! The progress of a chunk: several items of a map in one frame.

use std::time::Duration;

use brigade_wire::{Chunk, items};

use crate::error::TaskErrorKind;
use crate::payload::{Argument, PlacedValue};

/// An encoded result as it arrives over a link.
pub(crate) enum ValueRef<'a> {
    Inline(&'a [u8]),
    Placed(PlacedValue),
}

/// The results of a chunk. Filled while outcomes are handled, and read by the map once the chunk
/// has ended.
#[derive(Debug)]
pub(crate) struct ChunkProgress {
    /// The number of items and the time budget, as sent to the worker.
    pub(crate) shape: Chunk,
    /// Number of finished items, from the first on.
    pub(crate) answered: u32,
    /// `true` if the worker died in the first unfinished item, and not before it.
    pub(crate) died_in_an_item: bool,
    /// The encoded results of the finished items; empty for those that failed.
    pub(crate) results: Vec<u8>,
    /// The failures among the finished items, in order.
    pub(crate) failures: Vec<(u32, TaskErrorKind)>,
    /// Run time of the chunk in the worker.
    pub(crate) run_time: Duration,
    /// The results that lie in the worker's memory, in order. Their entries in `results` are empty.
    pub(crate) placed: Vec<(u32, PlacedValue)>,
    /// The encoded items, returned at the end.
    pub(crate) items: Option<Argument>,
}

impl ChunkProgress {
    pub(crate) fn new(shape: Chunk) -> Self {
        Self {
            shape,
            answered: 0,
            died_in_an_item: false,
            results: Vec::new(),
            failures: Vec::new(),
            run_time: Duration::ZERO,
            placed: Vec::new(),
            items: None,
        }
    }

    /// Records the end of the chunk. Returns `false` if no item finished although the chunk did not
    /// fail, which means that the worker did not run it.
    #[must_use]
    pub(crate) fn finish(&mut self, run_time: Duration, has_failed: bool) -> bool {
        self.run_time = run_time;
        has_failed || self.answered > 0
    }

    /// Records the worker's death after it had started `begun` items. Returns `false` if it had not
    /// reached the first one.
    pub(crate) fn lost_at(&mut self, begun: u64) -> bool {
        self.died_in_an_item = begun > self.answered.into();
        self.died_in_an_item || self.answered > 0
    }

    /// Discards all results, because a chunk that is sent again begins with its first item. Results
    /// that were claimed by a worker from which the chunk was revoked before it started are a lie.
    /// They would shift the results of the next worker.
    pub(crate) fn begin_anew(&mut self) {
        self.answered = 0;
        self.died_in_an_item = false;
        self.results.clear();
        self.failures.clear();
        self.placed.clear();
    }

    /// Records the outcome of an item. Returns `false` if it is not the next item.
    #[must_use]
    #[inline]
    pub(crate) fn answer(
        &mut self,
        index: u32,
        answer: Result<ValueRef<'_>, Box<TaskErrorKind>>,
    ) -> bool {
        if index != self.answered || index >= self.shape.items {
            return false;
        }
        self.answered += 1;
        match answer {
            Ok(ValueRef::Inline(result)) => match items::push(&mut self.results, result) {
                Ok(()) => return true,
                Err(error) => {
                    let message = format!("failed to store the result: {error}");
                    self.failures.push((index, TaskErrorKind::Codec { message }));
                }
            },
            Ok(ValueRef::Placed(placed)) => self.placed.push((index, placed)),
            Err(kind) => self.failures.push((index, *kind)),
        }
        items::push_empty(&mut self.results);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_claimed_before_a_chunk_is_sent_are_forgotten() {
        let mut chunk = ChunkProgress::new(Chunk { items: 2, budget: Duration::ZERO });
        assert!(chunk.answer(0, Ok(ValueRef::Inline(b"a lie"))));
        chunk.begin_anew();
        assert!(chunk.answer(0, Ok(ValueRef::Inline(b"first"))));
        assert!(chunk.answer(1, Ok(ValueRef::Inline(b"second"))));
        let mut results = Vec::new();
        items::push(&mut results, b"first").unwrap();
        items::push(&mut results, b"second").unwrap();
        assert_eq!((chunk.answered, chunk.results), (2, results));
    }
}
