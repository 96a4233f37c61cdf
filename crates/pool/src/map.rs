//! Implements `map` and `map_unordered`, which apply a function to the items of an iterator.
//!
//! Inputs are sent in *chunks* of as many items as make about half a millisecond of work, in one
//! frame each. The number of chunks in flight is bounded. A chunk ends when its items are finished,
//! or earlier: a worker returns the remaining items of a chunk that took too long, and if a worker
//! dies, only the item that ran has failed. The scheduler then divides the chunk, and the map
//! learns of the new chunks when it takes the results. So items are sent in bulk, but fail, are
//! retried and wait for each other as if each had been submitted by itself.

mod chunk;
mod chunks;
mod sizing;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Pool;
use crate::error::TaskError;
use chunk::Results;
use chunks::Chunks;

impl Pool {
    /// Applies `function` to each input and yields the results in the order of the inputs.
    ///
    /// The iterator is lazy and bounded: it takes inputs as results are consumed. A task that fails
    /// yields an error item, and the iteration continues.
    pub fn map<F, I, R>(&self, function: F, inputs: I) -> Map<'_, F, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Fn(I::Item) -> R + Copy + Send + 'static,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        Map::new(self, function, inputs.into_iter())
    }

    /// Applies `function` to each input like [`map`](Self::map), but yields the results in the
    /// order of completion.
    pub fn map_unordered<F, I, R>(
        &self,
        function: F,
        inputs: I,
    ) -> MapUnordered<'_, F, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Fn(I::Item) -> R + Copy + Send + 'static,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        MapUnordered::new(self, function, inputs.into_iter())
    }
}

/// An iterator over the results in the order of the inputs, created by [`Pool::map`].
///
/// It is lazy: inputs are taken only as results are taken. Dropping it cancels the items that have
/// not started.
#[must_use = "an iterator does nothing until it is used"]
pub struct Map<'pool, F, I: Iterator, R> {
    chunks: Chunks<'pool, F, I, R>,
    /// The next results.
    current: Option<Results>,
    /// Index of the first item after those in `current`.
    next: u64,
    /// Results of later items, by the index of the first one.
    early: BTreeMap<u64, Results>,
}

/// An iterator over the results in order of completion, created by [`Pool::map_unordered`].
///
/// It works like [`Map`], but a slow item does not delay the results of others.
#[must_use = "an iterator does nothing until it is used"]
pub struct MapUnordered<'pool, F, I: Iterator, R> {
    chunks: Chunks<'pool, F, I, R>,
    current: Option<Results>,
}

macro_rules! settings {
    () => {
        /// Sets the maximum number of inputs that are taken ahead of the yielded results. Values
        /// below 1 count as 1.
        ///
        /// The default is 128 inputs per worker, or more as long as they take less than 16 MiB
        /// encoded.
        pub fn window(mut self, items: usize) -> Self {
            self.chunks.set_window(items);
            self
        }

        /// Sets the number of items that are sent to a worker at a time. Values below 1 count as 1.
        ///
        /// By default, a chunk is about half a millisecond of work, and a worker that turns out to
        /// be slow returns the items that it has not started.
        pub fn chunk(mut self, items: usize) -> Self {
            self.chunks.set_chunk(items);
            self
        }

        /// Sets the hard deadline of each item; see
        /// [`PoolBuilder::deadline`](crate::PoolBuilder::deadline).
        ///
        /// With a fixed [`chunk`](Self::chunk) size, the items of a chunk share their time.
        pub fn deadline(mut self, limit: std::time::Duration) -> Self {
            self.chunks.set_deadline(limit);
            self
        }

        /// Sets the number of retries of each item; see
        /// [`TaskBuilder::retries`](crate::TaskBuilder::retries).
        pub fn retries(mut self, retries: u32) -> Self {
            self.chunks.set_retries(retries);
            self
        }
    };
}

impl<'pool, F, I, R> Map<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        let chunks = Chunks::new(pool, function, inputs);
        Self { chunks, current: None, next: 0, early: BTreeMap::new() }
    }

    settings!();

    /// Makes the results at `next` the current ones, and returns `true` if they have arrived.
    fn advance(&mut self) -> bool {
        while let Some(results) = self.chunks.settled() {
            self.early.insert(results.position(), results);
        }
        self.current = self.early.remove(&self.next);
        if let Some(results) = &self.current {
            self.next += results.len();
        }
        self.current.is_some()
    }
}

impl<F, I, R> Iterator for Map<'_, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.chunks.is_forked() {
            return self.chunks.forked().map(Err);
        }
        loop {
            self.chunks.make_progress();
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.chunks.yielded();
                return Some(result);
            }
            if let Some(done) = self.current.take() {
                self.chunks.release(&done);
            }
            self.chunks.refill();
            if !self.advance() && !self.chunks.wait() {
                return None;
            }
        }
    }
}

impl<'pool, F, I, R> MapUnordered<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        Self { chunks: Chunks::new(pool, function, inputs), current: None }
    }

    settings!();
}

impl<F, I, R> Iterator for MapUnordered<'_, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.chunks.is_forked() {
            return self.chunks.forked().map(Err);
        }
        loop {
            self.chunks.make_progress();
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.chunks.yielded();
                return Some(result);
            }
            if let Some(done) = self.current.take() {
                self.chunks.release(&done);
            }
            self.chunks.refill();
            self.current = self.chunks.settled();
            if self.current.is_none() && !self.chunks.wait() {
                return None;
            }
        }
    }
}

impl<F, I: Iterator, R> fmt::Debug for Map<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Map").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

impl<F, I: Iterator, R> fmt::Debug for MapUnordered<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MapUnordered").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}
