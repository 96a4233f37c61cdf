//! The results of a chunk of a map.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use brigade_task::backend::Value as _;
use brigade_task::map::ChunkResults;
use brigade_wire::codec;
use brigade_wire::{Attempt, TaskId, items};
use serde::de::DeserializeOwned;

use crate::cell::TaskCell;
use crate::chunk::ChunkProgress;
use crate::error::{TaskError, TaskErrorKind};
use crate::payload::{Value, undecodable};

/// The description of consecutive items.
#[derive(Debug, Clone, Copy)]
pub(super) struct Items {
    /// Index of the first item among the map's inputs.
    pub(super) position: u64,
    pub(super) count: u32,
    /// Task id of the first item. The ids of the others follow.
    pub(super) first: TaskId,
    pub(super) attempt: Attempt,
}

/// Results of consecutive items.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Results {
    items: Items,
    label: Option<Arc<str>>,
    yielded: u32,
    /// The encoded results; empty for items that failed.
    encoded: Vec<u8>,
    /// Offset of the next result.
    offset: usize,
    /// `true` if all results are values in `encoded`, as they almost always are.
    are_plain: bool,
    failures: VecDeque<(u32, TaskError)>,
    /// Results that lie elsewhere, and are represented in `encoded` by empty entries.
    elsewhere: VecDeque<(u32, Value)>,
    /// A failure of all items from this index on.
    all_failed: Option<(u32, TaskError)>,
    /// Bytes that the chunk takes up in the default window.
    pub(super) held: usize,
    /// `true` if the items were never submitted.
    pub(super) unsent: bool,
}

impl Items {
    /// Returns the id of an item.
    fn id(self, index: u32) -> TaskId {
        TaskId::new(self.first.get() + u64::from(index))
    }
}

impl Results {
    /// Returns the results of a chunk that has an outcome. Call it once.
    pub(super) fn of(chunk: &TaskCell, progress: ChunkProgress) -> Self {
        let ChunkProgress { shape, position, attempt, results, failures, elsewhere, .. } = progress;
        let items = Items { position, count: shape.items, first: chunk.id, attempt };
        let label = chunk.label().cloned();
        let failures = failures.into_iter().map(|(index, kind)| {
            let error = TaskError::new(kind);
            (index, error.of_task(items.id(index), items.attempt, label.clone()))
        });
        let failures: VecDeque<_> = failures.collect();
        let error = chunk.try_take().and_then(Result::err);
        let are_plain = failures.is_empty() && elsewhere.is_empty() && error.is_none();
        Self {
            items,
            label,
            yielded: 0,
            encoded: results,
            offset: 0,
            are_plain,
            failures,
            elsewhere: elsewhere.into(),
            all_failed: error.map(|error| (progress.answered, error)),
            held: 0,
            unsent: false,
        }
    }

    /// Returns the same failure for all of these items, which were not submitted.
    pub(super) fn unsent(items: Items, error: TaskError) -> Self {
        Self {
            items,
            label: None,
            yielded: 0,
            encoded: Vec::new(),
            offset: 0,
            are_plain: false,
            failures: VecDeque::new(),
            elsewhere: VecDeque::new(),
            all_failed: Some((0, error)),
            held: 0,
            unsent: true,
        }
    }

    pub(super) fn encoded_bytes(&self) -> usize {
        let elsewhere = self.elsewhere.iter().map(|(_, value)| value.size());
        elsewhere.fold(self.encoded.len(), usize::saturating_add)
    }

    /// Returns the position of the result that was returned last.
    pub(super) fn position(&self) -> u64 {
        self.items.position + u64::from(self.yielded.saturating_sub(1))
    }

    /// Returns the next result.
    #[inline]
    pub(super) fn next<R: DeserializeOwned + 'static>(&mut self) -> Option<Result<R, TaskError>> {
        if self.yielded == self.items.count {
            return None;
        }
        let index = self.yielded;
        self.yielded += 1;
        if !self.are_plain
            && let Some(error) = self.failure(index)
        {
            return Some(Err(error));
        }
        let mut rest = &self.encoded[self.offset..];
        // There is an entry for each finished item.
        let Some(Ok(encoded)) = items::take(&mut rest) else {
            return Some(Err(self.is_malformed(index, "the result is missing")));
        };
        self.offset = self.encoded.len() - rest.len();
        let elsewhere = if self.are_plain { None } else { take(&mut self.elsewhere, index) };
        let result = elsewhere.map_or_else(|| codec::decode(encoded), Value::decode);
        Some(result.map_err(|error| self.is_malformed(index, &undecodable(&error))))
    }

    #[cold]
    fn is_malformed(&self, index: u32, problem: &str) -> TaskError {
        let Self { items, label, .. } = self;
        let error = TaskError::new(TaskErrorKind::Codec { message: problem.to_owned() });
        error.of_task(items.id(index), items.attempt, label.clone()).at(self.position())
    }

    #[cold]
    fn failure(&mut self, index: u32) -> Option<TaskError> {
        if let Some(error) = take(&mut self.failures, index) {
            // Its entry is empty.
            let mut rest = &self.encoded[self.offset..];
            let _ = items::take(&mut rest);
            self.offset = self.encoded.len() - rest.len();
            return Some(error.at(self.position()));
        }
        let (_, error) = self.all_failed.as_ref().filter(|(from, _)| *from <= index)?;
        Some(error.clone().of_item(self.items.id(index)).at(self.position()))
    }
}

/// Takes what belongs to an item, if there is anything.
fn take<T>(of_items: &mut VecDeque<(u32, T)>, index: u32) -> Option<T> {
    of_items.front().filter(|(first, _)| *first == index)?;
    of_items.pop_front().map(|(_, it)| it)
}

impl ChunkResults for Results {
    fn positions(&self) -> Range<u64> {
        let Items { position, count, .. } = self.items;
        position..position + u64::from(count)
    }
}
