//! Implements `map` and `map_unordered`, which apply a task to the items of an iterator.
//!
//! Inputs travel in *chunks*, one message each, of as many items as make a few milliseconds of
//! work. Each item fails, is retried and has an outcome for itself. The chunks of a batch have a
//! fixed size, because an outcome is found by the number of its chunk.

mod chunks;
mod results;
mod sizing;

pub(super) use sizing::RunTimes;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use brigade_task::TaskError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::chunks::Chunks;
use self::results::Results;
use super::mapped::Mapped;
use super::shared::Shared;
use crate::names::Priority;
use crate::needs::Needs;

/// An iterator over the results in the order of the inputs; returned by
/// [`Cluster::map`](crate::Cluster::map) and [`Batch::map`](crate::Batch::map).
///
/// It is lazy: inputs are taken only as results are taken. Dropping it cancels the items that have
/// no outcome, except those of a batch.
#[must_use = "an iterator does nothing until it is used"]
pub struct ClusterMap<'cluster, I: Iterator, R> {
    chunks: Chunks<'cluster, I>,
    current: Option<Results>,
    /// Index of the chunk to be yielded next.
    next: u64,
    /// Results of later chunks.
    early: BTreeMap<u64, Results>,
    types: PhantomData<fn() -> R>,
}

/// An iterator over the results in the order of completion; returned by
/// [`Cluster::map_unordered`](crate::Cluster::map_unordered) and
/// [`Batch::map_unordered`](crate::Batch::map_unordered).
///
/// It works like [`ClusterMap`], but a slow item does not delay the results of others.
#[must_use = "an iterator does nothing until it is used"]
pub struct ClusterMapUnordered<'cluster, I: Iterator, R> {
    chunks: Chunks<'cluster, I>,
    current: Option<Results>,
    types: PhantomData<fn() -> R>,
}

impl<'cluster, I: Iterator, R> ClusterMap<'cluster, I, R> {
    pub(super) fn new(
        shared: &'cluster Arc<Shared>,
        batch: Option<Mapped>,
        (name, types): (&str, u64),
        inputs: I,
    ) -> Self {
        let mut chunks = Chunks::new(shared, batch, name, inputs);
        chunks.settings.types = types;
        Self { chunks, current: None, next: 0, early: BTreeMap::new(), types: PhantomData }
    }
}

impl<'cluster, I: Iterator, R> ClusterMapUnordered<'cluster, I, R> {
    pub(super) fn new(
        shared: &'cluster Arc<Shared>,
        batch: Option<Mapped>,
        (name, types): (&str, u64),
        inputs: I,
    ) -> Self {
        let mut chunks = Chunks::new(shared, batch, name, inputs);
        chunks.settings.types = types;
        Self { chunks, current: None, types: PhantomData }
    }
}

/// Implements the settings, which both kinds of maps have in common.
macro_rules! impl_settings {
    ($map:ident) => {
        impl<I: Iterator, R> $map<'_, I, R> {
            /// Sets the maximum number of inputs that are taken ahead of the yielded results.
            /// Values below 1 count as 1.
            ///
            /// The default is 262,144 inputs, or fewer if they take 64 MiB encoded.
            pub fn window(mut self, items: usize) -> Self {
                self.chunks.window = items.max(1);
                self
            }

            /// Sets the number of items that are sent in one message. Values below 1 count as 1.
            ///
            /// By default, a chunk is about 4 ms of work. In a batch it has 16 items by default,
            /// and later runs use the size of the first.
            pub fn chunk(mut self, items: usize) -> Self {
                self.chunks.sizing.fix(u32::try_from(items).unwrap_or(u32::MAX));
                self
            }

            /// Sets the deadline of each item; see
            /// [`ClusterTask::deadline`](crate::ClusterTask::deadline).
            pub fn deadline(mut self, limit: Duration) -> Self {
                self.chunks.settings.deadline = Some(limit);
                self
            }

            /// Sets the number of retries of each item; see
            /// [`ClusterTask::retries`](crate::ClusterTask::retries).
            pub fn retries(mut self, retries: u32) -> Self {
                self.chunks.settings.retries = retries;
                self
            }

            /// Sets the priority of the items.
            pub fn priority(mut self, priority: Priority) -> Self {
                self.chunks.settings.priority = priority;
                self
            }

            /// Sets the requirements of the items; see
            /// [`ClusterTask::needs`](crate::ClusterTask::needs).
            pub fn needs(mut self, needs: Needs) -> Self {
                self.chunks.settings.needs = needs;
                self
            }
        }

        impl<I: Iterator, R> fmt::Debug for $map<'_, I, R> {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.debug_struct(stringify!($map))
                    .field("chunks", &self.chunks)
                    .finish_non_exhaustive()
            }
        }
    };
}

impl_settings!(ClusterMap);
impl_settings!(ClusterMapUnordered);

impl<I, R> Iterator for ClusterMap<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                return Some(result);
            }
            if let Some(results) = self.early.remove(&self.next) {
                self.next += 1;
                self.chunks.release(&results);
                self.current = Some(results);
                continue;
            }
            let (index, results) = self.chunks.next()?;
            self.early.insert(index, results);
        }
    }
}

impl<I, R> Iterator for ClusterMapUnordered<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                return Some(result);
            }
            let (_, results) = self.chunks.next()?;
            self.chunks.release(&results);
            self.current = Some(results);
        }
    }
}
