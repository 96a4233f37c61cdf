//! A chunk of a map, and its results once it has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::clock::Monotonic;
use brigade_wire::{Attempt, TaskId, codec, items};
use serde::de::DeserializeOwned;
use tracing::{debug, info};

use crate::cell::TaskCell;
use crate::chunk::ChunkProgress;
use crate::error::{TaskError, TaskErrorKind};
use crate::payload::{Argument, PlacedValue};

/// Items that were sent in one frame.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) cell: Arc<TaskCell>,
    pub(super) items: Items,
    /// Bytes that it takes up in the default window.
    pub(super) held: usize,
}

/// The description of consecutive items, apart from their encoded inputs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    /// Index of the first item among the map's inputs.
    pub(super) position: u64,
    pub(super) count: u32,
    /// Task id of the first item. The ids of the others follow.
    pub(super) first: TaskId,
    pub(super) attempt: Attempt,
    pub(super) retries: u32,
    /// Number of workers that died running the first item. An item that is retried is alone in its
    /// chunk.
    pub(super) deaths: u32,
    /// Time of their first submission, if they have a queue deadline.
    pub(super) submitted: Option<Monotonic>,
}

/// A chunk that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) results: Results,
    /// Items to run, or to run again, with their encoded inputs.
    pub(super) again: Vec<(Items, Vec<u8>)>,
}

/// Results of consecutive items.
#[derive(Debug)]
pub(super) struct Results {
    items: Items,
    yielded: u32,
    /// The encoded results; empty for items that failed.
    encoded: Vec<u8>,
    /// Offset of the next result.
    offset: usize,
    failures: VecDeque<(u32, TaskError)>,
    /// Results that lie elsewhere, and are represented in `encoded` by empty entries.
    placed: VecDeque<(u32, PlacedValue)>,
    /// A failure of all items from this index on.
    all_failed: Option<(u32, TaskError)>,
    /// Bytes that the chunk takes up in the default window.
    pub(super) held: usize,
    /// `true` if the items were never submitted.
    pub(super) unsent: bool,
}

impl Items {
    /// Splits the items and their encoded inputs into at most `most` parts of about equal size.
    fn split(self, encoded: Vec<u8>, most: usize) -> Vec<(Self, Vec<u8>)> {
        let most = u32::try_from(most.max(1)).unwrap_or(u32::MAX);
        let size = self.count.div_ceil(most).max(1);
        let (mut left, mut encoded, mut parts) = (self, Encoded(encoded), Vec::new());
        while left.count > size {
            parts.push((Self { count: size, ..left }, encoded.split_off_front(size)));
            left = left.from(size);
        }
        parts.push((left, encoded.0));
        parts
    }

    /// Emits an event. A panicking subscriber must not cost the other items; the panic hook has
    /// reported it.
    pub(super) fn report_resubmission(&self, pool: &str, attempt_before: u32) {
        let (task, attempt) = (self.first, self.attempt.get());
        let _ = catch_panic(|| {
            if attempt > attempt_before {
                info!(pool, %task, attempt, "task will run again, its worker died");
            } else {
                debug!(pool, %task, count = self.count, "items that had not started are sent again");
            }
        });
    }

    /// Returns the items from `index` on.
    fn from(self, index: u32) -> Self {
        Self {
            position: self.position + u64::from(index),
            count: self.count - index,
            first: TaskId::new(self.first.get() + u64::from(index)),
            ..self
        }
    }
}

/// Splits each of the items into at most `parts` parts.
pub(super) fn split(
    again: Vec<(Items, Vec<u8>)>,
    parts: usize,
) -> impl Iterator<Item = (Items, Vec<u8>)> {
    again.into_iter().flat_map(move |(items, encoded)| items.split(encoded, parts))
}

impl Chunk {
    /// Returns the results and the items to run again. Call it once, when the cell has an outcome.
    /// An item that `quarantine` workers died running is not retried.
    pub(super) fn end(self, progress: &mut ChunkProgress, quarantine: u32) -> Ended {
        let items = self.items;
        let answered = progress.answered.min(items.count);
        let error = self.cell.try_take().and_then(Result::err);
        let failures = progress.failures.drain(..);
        let mut results = Results {
            items: Items { count: answered, ..items },
            yielded: 0,
            encoded: std::mem::take(&mut progress.results),
            offset: 0,
            failures: failures.map(|(index, kind)| (index, failure(kind, items, index))).collect(),
            placed: std::mem::take(&mut progress.placed).into(),
            all_failed: None,
            held: 0,
            unsent: false,
        };
        let mut again = Vec::new();
        if answered < items.count {
            let rest = items.from(answered);
            let items_again = progress.items.take().map_or_else(Vec::new, Argument::into_vec);
            let mut encoded = Encoded(items_again);
            encoded.skip(answered);
            match error {
                // The worker returned the items because the budget was used up.
                None => again.push((rest, encoded.0)),
                Some(error) if !is_worker_end(&error) => {
                    results.items.count = items.count;
                    results.all_failed = Some((answered, error));
                }
                // The worker died between two items. At least one item finished, so this cannot go
                // on forever.
                Some(_) if !progress.died_in_an_item && answered > 0 => {
                    again.push((rest, encoded.0));
                }
                Some(error) => {
                    let behind = rest.from(1);
                    let one = encoded.split_off_first();
                    let deaths = rest.deaths + u32::from(error.is_worker_death());
                    // An item that was killed by the shutdown has no pool to run in.
                    let may_retry = rest.retries > 0 && *error.kind() != TaskErrorKind::Killed;
                    if may_retry && deaths < quarantine {
                        let (attempt, retries) = (rest.attempt.next(), rest.retries - 1);
                        again.push((Items { count: 1, attempt, retries, deaths, ..rest }, one));
                    } else {
                        let error = error.of_item(rest.first);
                        let error = if may_retry { error.quarantined() } else { error };
                        results.items.count += 1;
                        items::push_empty(&mut results.encoded);
                        results.failures.push_back((answered, error));
                    }
                    if behind.count > 0 {
                        again.push((behind, encoded.0));
                    }
                }
            }
        }
        Ended { results, again }
    }
}

/// Returns `true` if the task failed because its worker died. A chunk whose queue deadline expired
/// had no worker.
fn is_worker_end(error: &TaskError) -> bool {
    !error.is_queue_deadline()
        && matches!(
            error.kind(),
            TaskErrorKind::WorkerDied { .. }
                | TaskErrorKind::Killed
                | TaskErrorKind::DeadlineExceeded { .. }
        )
}

fn failure(kind: TaskErrorKind, items: Items, index: u32) -> TaskError {
    TaskError::new(kind).of_task(items.from(index).first, items.attempt, None)
}

/// The encoded inputs of items.
struct Encoded(Vec<u8>);

impl Encoded {
    fn skip(&mut self, count: u32) {
        let mut rest = self.0.as_slice();
        for _ in 0..count {
            // This process has encoded them, so this cannot fail.
            let _ = items::take(&mut rest);
        }
        let taken = self.0.len() - rest.len();
        self.0.drain(..taken);
    }

    fn split_off_first(&mut self) -> Vec<u8> {
        self.split_off_front(1)
    }

    fn split_off_front(&mut self, count: u32) -> Vec<u8> {
        let mut rest = self.0.as_slice();
        for _ in 0..count {
            let _ = items::take(&mut rest);
        }
        let behind = self.0.split_off(self.0.len() - rest.len());
        std::mem::replace(&mut self.0, behind)
    }
}

impl Results {
    /// Returns the same failure for all of these items, which were not submitted.
    pub(super) fn unsent(items: Items, error: TaskError) -> Self {
        Self {
            items,
            yielded: 0,
            encoded: Vec::new(),
            offset: 0,
            failures: VecDeque::new(),
            placed: VecDeque::new(),
            all_failed: Some((0, error)),
            held: 0,
            unsent: true,
        }
    }

    /// Returns the index of the first item among the map's inputs.
    pub(super) fn position(&self) -> u64 {
        self.items.position
    }

    pub(super) fn len(&self) -> u64 {
        self.items.count.into()
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        let placed = self.placed.iter().map(|(_, value)| value.0.len());
        placed.fold(self.encoded.len(), usize::saturating_add)
    }

    /// Returns the next result.
    #[inline]
    pub(super) fn next<R: DeserializeOwned + 'static>(&mut self) -> Option<Result<R, TaskError>> {
        if self.yielded == self.items.count {
            return None;
        }
        let index = self.yielded;
        self.yielded += 1;
        if let Some(error) = self.failure(index) {
            return Some(Err(error));
        }
        let mut rest = &self.encoded[self.offset..];
        let is_placed = self.placed.front().is_some_and(|(placed, _)| *placed == index);
        let placed = if is_placed { self.placed.pop_front() } else { None };
        let result = match (items::take(&mut rest), placed) {
            (Some(Ok(_)), Some((_, placed))) => codec::decode_from(&placed),
            (Some(Ok(encoded)), None) => codec::decode(encoded),
            // There is an entry for each finished item.
            _ => return Some(Err(self.is_missing(index))),
        };
        self.offset = self.encoded.len() - rest.len();
        Some(result.map_err(|error| {
            let error = codec::chain(&error);
            let message = format!("the result arrived but could not be decoded: {error}");
            failure(TaskErrorKind::Codec { message }, self.items, index)
        }))
    }

    #[cold]
    fn is_missing(&self, index: u32) -> TaskError {
        let message = "the result is missing".to_owned();
        failure(TaskErrorKind::Codec { message }, self.items, index)
    }

    #[inline]
    fn failure(&mut self, index: u32) -> Option<TaskError> {
        if self.failures.is_empty() && self.all_failed.is_none() {
            return None;
        }
        self.next_failure(index)
    }

    #[cold]
    fn next_failure(&mut self, index: u32) -> Option<TaskError> {
        if self.failures.front().is_some_and(|(failed, _)| *failed == index) {
            // Its entry is empty.
            let mut rest = &self.encoded[self.offset..];
            let _ = items::take(&mut rest);
            self.offset = self.encoded.len() - rest.len();
            return self.failures.pop_front().map(|(_, error)| error);
        }
        let (_, error) = self.all_failed.as_ref().filter(|(from, _)| *from <= index)?;
        Some(error.clone().of_item(self.items.from(index).first))
    }
}
