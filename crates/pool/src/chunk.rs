//! A chunk: several items of a map in one frame.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::{FailedItems, Failure, InterruptedAttempt};
use brigade_sys::sync::Mutex;
use brigade_wire::ring::Consumer;
use brigade_wire::{Attempt, Chunk, codec, items};

use crate::cell::TaskCell;
use crate::error::TaskErrorKind;
use crate::payload::Value;
use brigade_task::backend::{Bytes, CompletionQueue};

/// An encoded result as it arrives over a link.
pub(crate) enum ValueRef<'a> {
    Inline(&'a [u8]),
    /// One that lies elsewhere.
    Other(Value),
}

impl ValueRef<'_> {
    /// Returns the value, copied out of the link.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Inline(bytes) => Value::Inline(Bytes::copy(bytes)),
            Self::Other(value) => value,
        }
    }
}

/// A chunk and the results of its items. Filled while outcomes are handled, and read by the map
/// once the chunk has ended.
#[derive(Debug)]
pub(crate) struct ChunkProgress {
    /// The number of items and the time budget, as sent to the worker.
    pub(crate) shape: Chunk,
    /// Index of the first item among the map's inputs.
    pub(crate) position: u64,
    /// Number of chunks into which items that come back from a worker are divided.
    pub(crate) parts: u32,
    /// Number of bytes of the encoded items.
    pub(crate) bytes: usize,
    pub(crate) owner: Arc<ChunkOwner>,
    pub(crate) retried_for: RetriedFor,
    /// The attempt that the results belong to.
    pub(crate) attempt: Attempt,
    /// Number of finished items, from the first on.
    pub(crate) answered: u32,
    /// The encoded results of the finished items; empty for those that failed.
    pub(crate) results: Vec<u8>,
    /// The failures among the finished items, in order.
    pub(crate) failures: Vec<(u32, TaskErrorKind)>,
    /// Run time of the chunk in the worker.
    pub(crate) run_time: Duration,
    /// The results that lie elsewhere, in order. Their entries in `results` are empty.
    pub(crate) elsewhere: Vec<(u32, Value)>,
}

/// The failures of its function after which a task or an item may run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RetriedFor {
    pub(crate) panics: bool,
    pub(crate) errors: bool,
}

/// A worker's end of a chunk.
pub(crate) enum ChunkEnd {
    /// No item is left to run.
    Complete,
    /// The task is not a chunk, and may run again after some failures.
    Retried(RetriedFor),
    /// The worker returns the items after the first ones, or some of these may run again.
    Returned { finished: NonZeroU32, parts: u32, failed: Vec<FailedItems> },
}

/// The map that a chunk belongs to, as it appears to the pool.
#[derive(Debug)]
pub(crate) struct ChunkOwner {
    /// Ids of chunks that have ended.
    pub(crate) completions: Arc<CompletionQueue>,
    /// Chunks that were divided from others and that the map has not taken; `None` once the map is
    /// dropped, because chunks own their owner.
    divided: Mutex<Option<Vec<TaskCell>>>,
}

impl Default for ChunkOwner {
    fn default() -> Self {
        Self { completions: Arc::default(), divided: Mutex::new(Some(Vec::new())) }
    }
}

impl ChunkOwner {
    /// Adds a chunk. It has to be added before it can end, so that the map knows it by then.
    pub(crate) fn add(&self, chunk: TaskCell) {
        if let Some(divided) = &mut *self.divided.lock() {
            divided.push(chunk);
        }
    }

    /// Takes the chunks that were added since the last call.
    pub(crate) fn take(&self) -> Vec<TaskCell> {
        self.divided.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes the chunks that were added, and drops later ones.
    pub(crate) fn close(&self) -> Vec<TaskCell> {
        self.divided.lock().take().unwrap_or_default()
    }
}

impl ChunkProgress {
    pub(crate) fn new(
        shape: Chunk,
        position: u64,
        parts: u32,
        bytes: usize,
        owner: &Arc<ChunkOwner>,
        retried_for: RetriedFor,
    ) -> Self {
        Self {
            shape,
            position,
            parts,
            bytes,
            owner: Arc::clone(owner),
            retried_for,
            attempt: Attempt::first(),
            answered: 0,
            results: Vec::new(),
            failures: Vec::new(),
            run_time: Duration::ZERO,
            elsewhere: Vec::new(),
        }
    }

    /// Splits off the items from `at` on, whose encoding takes `bytes`, with their results.
    pub(crate) fn split_off(&mut self, at: u32, bytes: usize) -> Self {
        let items = self.shape.items.saturating_sub(at);
        let shape = Chunk { items, ..self.shape };
        let position = self.position + u64::from(at);
        let mut rest = Self::new(shape, position, self.parts, bytes, &self.owner, self.retried_for);
        self.shape.items = at;
        rest.attempt = self.attempt;
        if at < self.answered {
            rest.answered = self.answered - at;
            rest.run_time = self.run_time / self.answered * rest.answered;
            self.run_time -= rest.run_time;
            self.answered = at;
            rest.results = self.results.split_off(items::size(&self.results, at));
            rest.failures = split_off(&mut self.failures, at);
            rest.elsewhere = split_off(&mut self.elsewhere, at);
        }
        rest
    }

    /// Records the end of the chunk. Returns `None` if no item finished although the chunk did not
    /// fail, which means that the worker did not run it.
    #[must_use]
    pub(crate) fn finish(&mut self, run_time: Duration, has_failed: bool) -> Option<ChunkEnd> {
        self.run_time = run_time;
        let failed = if has_failed { Vec::new() } else { self.failed() };
        if has_failed || (self.answered == self.shape.items && failed.is_empty()) {
            return Some(ChunkEnd::Complete);
        }
        let finished = NonZeroU32::new(self.answered)?;
        Some(ChunkEnd::Returned { finished, parts: self.parts, failed })
    }

    /// Returns the finished items that may run again.
    fn failed(&self) -> Vec<FailedItems> {
        let mut failed: Vec<FailedItems> = Vec::new();
        if self.retried_for == RetriedFor::default() {
            return failed;
        }
        let mut results = &*self.results;
        let mut failures = self.failures.iter().peekable();
        let mut elsewhere = self.elsewhere.iter().peekable();
        for first in 0..self.answered {
            let encoded = items::take(&mut results).and_then(Result::ok).unwrap_or_default();
            let problem = failures.next_if(|(index, _)| *index == first);
            let has_panicked = matches!(problem, Some((_, TaskErrorKind::Panicked { .. })));
            let value = elsewhere.next_if(|(index, _)| *index == first);
            let is_err = value.map_or_else(|| codec::is_err(encoded), |(_, value)| value.is_err());
            let failure = if self.retried_for.panics && has_panicked {
                Failure::Panic
            } else if self.retried_for.errors && is_err {
                Failure::Error
            } else {
                continue;
            };
            let follows = |last: &&mut FailedItems| {
                last.failure == failure && last.first + last.count.get() == first
            };
            match failed.last_mut().filter(follows) {
                Some(last) => last.count = last.count.saturating_add(1),
                None => failed.push(FailedItems { first, count: NonZeroU32::MIN, failure }),
            }
        }
        failed
    }

    /// Returns the progress at the death of the worker, which had started `begun` items. Returns
    /// `None` if it had not reached the first one: then the chunk has not started.
    pub(crate) fn interrupted(&self, ring_index: u16, begun: u64) -> Option<InterruptedAttempt> {
        let (finished, parts) = (self.answered, self.parts);
        let in_item = begun > finished.into();
        let has_begun = in_item || finished > 0;
        has_begun.then(|| {
            let failed = self.failed();
            InterruptedAttempt { ring_index, finished, in_item, parts, failed }
        })
    }

    /// Returns the number of bytes of the results.
    #[cfg(feature = "recording")]
    pub(crate) fn result_bytes(&self) -> u64 {
        let elsewhere: usize = self.elsewhere.iter().map(|(_, value)| value.len()).sum();
        (self.results.len() + elsewhere) as u64
    }

    /// Discards all results, because a chunk that runs again begins with its first item. Results
    /// that were claimed by a worker from which the chunk was revoked before it started are a lie.
    /// They would shift the results of the next worker.
    pub(crate) fn begin_anew(&mut self, attempt: Attempt) {
        self.attempt = attempt;
        self.answered = 0;
        self.results.clear();
        self.failures.clear();
        self.elsewhere.clear();
    }

    /// Takes the values of the next items that have arrived in their short form, and returns their
    /// number.
    pub(crate) fn take_items(&mut self, ring: &mut Consumer) -> u32 {
        let left = self.shape.items.saturating_sub(self.answered);
        let taken = ring.take_items(self.answered, left, &mut self.results);
        self.answered += taken;
        taken
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
            Ok(value) => self.store(index, value),
            Err(kind) => {
                self.failures.push((index, *kind));
                items::push_empty(&mut self.results);
            }
        }
        true
    }

    #[inline]
    fn store(&mut self, index: u32, value: ValueRef<'_>) {
        match value {
            ValueRef::Inline(result) => match items::push(&mut self.results, result) {
                Ok(()) => return,
                Err(error) => {
                    let message = format!("cannot store the result: {error}");
                    self.failures.push((index, TaskErrorKind::Codec { message }));
                }
            },
            ValueRef::Other(value) => self.elsewhere.push((index, value)),
        }
        items::push_empty(&mut self.results);
    }
}

/// Splits off what belongs to the items from `at` on.
fn split_off<T>(of_items: &mut Vec<(u32, T)>, at: u32) -> Vec<(u32, T)> {
    let first = of_items.partition_point(|(index, _)| *index < at);
    of_items.drain(first..).map(|(index, it)| (index - at, it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(items: u32) -> ChunkProgress {
        let shape = Chunk { items, budget: Duration::ZERO };
        let retried_for = RetriedFor { panics: true, errors: true };
        ChunkProgress::new(shape, 10, 4, 0, &Arc::default(), retried_for)
    }

    #[test]
    fn results_claimed_before_a_chunk_is_sent_are_forgotten() {
        let mut chunk = chunk(2);
        assert!(chunk.answer(0, Ok(ValueRef::Inline(b"a lie"))));
        chunk.begin_anew(Attempt::first().next());
        assert!(chunk.answer(0, Ok(ValueRef::Inline(b"first"))));
        assert!(chunk.answer(1, Ok(ValueRef::Inline(b"second"))));
        let mut results = Vec::new();
        items::push(&mut results, b"first").unwrap();
        items::push(&mut results, b"second").unwrap();
        assert_eq!((chunk.answered, chunk.results), (2, results));
    }

    #[test]
    fn items_that_failed_are_found_and_split_off_with_their_results() {
        let panicked = || {
            let (message, location) = (String::new(), String::new());
            Err(Box::new(TaskErrorKind::Panicked { message, location, backtrace: String::new() }))
        };
        let mut chunk = chunk(6);
        let elsewhere = Value::Inline(Bytes::copy(&[1, 7]));
        let answers = [
            Ok(ValueRef::Inline(&[0, 5])),
            Ok(ValueRef::Inline(&[1, 6])),
            Ok(ValueRef::Other(elsewhere)),
            panicked(),
            Ok(ValueRef::Inline(&[0, 8])),
        ];
        for (index, answer) in (0..).zip(answers) {
            assert!(chunk.answer(index, answer));
        }
        let failed = |chunk: &ChunkProgress| {
            let failed = chunk.failed().into_iter();
            failed.map(|it| (it.first, it.count.get(), it.failure)).collect::<Vec<_>>()
        };
        assert_eq!(failed(&chunk), [(1, 2, Failure::Error), (3, 1, Failure::Panic)]);
        let rest = chunk.split_off(2, 0);
        assert_eq!(failed(&chunk), [(1, 1, Failure::Error)]);
        assert_eq!(failed(&rest), [(0, 1, Failure::Error), (1, 1, Failure::Panic)]);
        assert_eq!((chunk.answered, rest.answered, rest.shape.items), (2, 3, 4));
        assert_eq!((chunk.results, chunk.elsewhere.len()), (vec![2, 0, 5, 2, 1, 6], 0));
        assert_eq!((rest.results, rest.elsewhere[0].0), (vec![0, 0, 2, 0, 8], 0));
    }

    #[test]
    fn a_dead_worker_has_begun_a_chunk_once_it_has_begun_an_item() {
        let mut chunk = chunk(3);
        assert!(chunk.interrupted(7, 0).is_none());
        assert!(chunk.interrupted(7, 1).is_some_and(|it| it.in_item && it.finished == 0));
        assert!(chunk.answer(0, Ok(ValueRef::Inline(b""))));
        assert!(chunk.interrupted(7, 1).is_some_and(|it| !it.in_item && it.finished == 1));
        // Any number, from a worker that has overwritten its table.
        assert!(chunk.interrupted(7, u64::MAX).is_some_and(|it| it.in_item));
        let rest = chunk.split_off(1, 5);
        assert_eq!((chunk.shape.items, rest.shape.items, rest.position), (1, 2, 11));
        assert!(!chunk.answer(1, Ok(ValueRef::Inline(b""))), "the item is not there any more");
    }
}
