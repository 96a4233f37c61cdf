//! Several items of a map in one frame: what they have come to, as far as it is known.

use std::time::Duration;

use brigade_wire::{Chunk, items};

use crate::error::TaskErrorKind;
use crate::payload::{Argument, PlacedValue};

/// An encoded result as it comes out of a link.
pub(crate) enum Answered<'a> {
    Inline(&'a [u8]),
    Placed(PlacedValue),
}

/// Filled by whoever collects the answers; read by the map once the chunk has ended.
#[derive(Debug)]
pub(crate) struct ChunkProgress {
    /// What the worker is told.
    pub(crate) shape: Chunk,
    /// How many items were answered, from the first on.
    pub(crate) answered: u32,
    /// Whether the worker died in the first item that is not answered, and not before it.
    pub(crate) died_in_an_item: bool,
    /// The encoded results of the answered items; empty for those that failed.
    pub(crate) results: Vec<u8>,
    /// Which of the answered items failed, in their order.
    pub(crate) failures: Vec<(u32, TaskErrorKind)>,
    /// From the begin to the end, in the worker.
    pub(crate) run_time: Duration,
    /// The answered items whose results lie in the worker's memory, in their order; those in `results` are empty.
    pub(crate) placed: Vec<(u32, PlacedValue)>,
    /// The encoded items, given back at the end.
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

    /// The worker says that it has done what it can. False when that is nothing: then it was not at it at all.
    #[must_use]
    pub(crate) fn finish(&mut self, run_time: Duration, has_failed: bool) -> bool {
        self.run_time = run_time;
        has_failed || self.answered > 0
    }

    /// The worker is dead, and so many items had begun. False when it had not come to the first one.
    pub(crate) fn lost_at(&mut self, begun: u64) -> bool {
        self.died_in_an_item = begun > self.answered.into();
        self.died_in_an_item || self.answered > 0
    }

    /// Forgets all answers: a chunk that is sent begins with its first item. What a worker has claimed that gave it back
    /// without having begun it was a lie, and would move the answers of the next one.
    pub(crate) fn begin_anew(&mut self) {
        self.answered = 0;
        self.died_in_an_item = false;
        self.results.clear();
        self.failures.clear();
        self.placed.clear();
    }

    /// Takes the answer to an item; false when it is not the one that is due.
    #[must_use]
    #[inline]
    pub(crate) fn answer(
        &mut self,
        index: u32,
        answer: Result<Answered<'_>, Box<TaskErrorKind>>,
    ) -> bool {
        if index != self.answered || index >= self.shape.items {
            return false;
        }
        self.answered += 1;
        match answer {
            Ok(Answered::Inline(result)) => match items::push(&mut self.results, result) {
                Ok(()) => return true,
                Err(error) => {
                    let message = format!("the result cannot be kept: {error}");
                    self.failures.push((index, TaskErrorKind::Codec { message }));
                }
            },
            Ok(Answered::Placed(placed)) => self.placed.push((index, placed)),
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
    fn what_was_claimed_before_a_chunk_began_does_not_move_its_answers() {
        let mut chunk = ChunkProgress::new(Chunk { items: 2, budget: Duration::ZERO });
        assert!(chunk.answer(0, Ok(Answered::Inline(b"a lie"))));
        chunk.begin_anew();
        assert!(chunk.answer(0, Ok(Answered::Inline(b"first"))));
        assert!(chunk.answer(1, Ok(Answered::Inline(b"second"))));
        let mut results = Vec::new();
        items::push(&mut results, b"first").unwrap();
        items::push(&mut results, b"second").unwrap();
        assert_eq!((chunk.answered, chunk.results), (2, results));
    }
}
