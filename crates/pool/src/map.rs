//! Implements `map` and `map_unordered`, which apply a function to the items of an iterator.
//!
//! Inputs are sent in *chunks* of as many items as make about 3 ms of work, in one frame
//! each. The number of chunks in flight is bounded. A chunk ends when its items are finished, or
//! earlier: a worker returns the remaining items of a chunk that took too long, and if a worker
//! dies, only the item that ran has failed. The scheduler then divides the chunk, and the map
//! learns of the new chunks when it takes the results. So items are sent in bulk, but fail, are
//! retried and wait for each other as if each had been submitted by itself.

mod chunk;
mod chunks;
#[cfg(feature = "futures")]
mod futures;
mod sizing;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;

use brigade_task::Function;
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
    pub fn map<F, I, R, By>(&self, function: F, inputs: I) -> Map<'_, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Function<I::Item, R, By>,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        let chunks = Chunks::new(self, &function.target(), inputs.into_iter());
        Map { chunks, order: Order::default(), types: PhantomData }
    }

    /// Applies `function` to each input like [`map`](Self::map), but yields the results in the
    /// order of completion.
    pub fn map_unordered<F, I, R, By>(
        &self,
        function: F,
        inputs: I,
    ) -> MapUnordered<'_, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Function<I::Item, R, By>,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        let chunks = Chunks::new(self, &function.target(), inputs.into_iter());
        MapUnordered { chunks, types: PhantomData }
    }
}

/// An iterator over the results in the order of the inputs, created by [`Pool::map`].
///
/// It is lazy: inputs are taken only as results are taken. Dropping it cancels the items that have
/// not started.
#[must_use = "an iterator does nothing until it is used"]
pub struct Map<'pool, I: Iterator, R> {
    chunks: Chunks<'pool, I>,
    order: Order,
    types: PhantomData<fn() -> R>,
}

/// Puts results into the order of the inputs.
#[derive(Default)]
struct Order {
    /// Index of the first item after those that are being yielded.
    next: u64,
    /// Results of later items, by the index of the first one.
    early: BTreeMap<u64, Results>,
}

/// An iterator over the results in order of completion, created by [`Pool::map_unordered`].
///
/// It works like [`Map`], but a slow item does not delay the results of others.
#[must_use = "an iterator does nothing until it is used"]
pub struct MapUnordered<'pool, I: Iterator, R> {
    chunks: Chunks<'pool, I>,
    types: PhantomData<fn() -> R>,
}

/// Implements what both kinds of maps have in common: the settings, and `Debug`.
macro_rules! impl_settings {
    ($map:ident) => {
        impl<I: Iterator, R> $map<'_, I, R> {
            /// Sets the maximum number of inputs that are taken ahead of the yielded results.
            /// Values below 1 count as 1.
            ///
            /// The default is 128 inputs per worker, or more as long as they take less than 16 MiB
            /// encoded.
            pub fn window(mut self, items: usize) -> Self {
                self.chunks.window = Some(items.max(1));
                self
            }

            /// Sets the number of items that are sent to a worker at a time, however slowly the
            /// inputs come. Values below 1 count as 1.
            ///
            /// By default, a chunk is about 3 ms of work, inputs that come slowly are sent at
            /// once, and a worker that turns out to be slow returns the items that it has not
            /// started.
            pub fn chunk(mut self, items: usize) -> Self {
                self.chunks.sizing.fix(items);
                self
            }

            /// Sets the hard deadline of each item; see
            /// [`PoolBuilder::deadline`](crate::PoolBuilder::deadline).
            ///
            /// With a fixed [`chunk`](Self::chunk) size, the items of a chunk share their time.
            pub fn deadline(mut self, limit: std::time::Duration) -> Self {
                self.chunks.deadline = Some(limit);
                self
            }

            /// Sets a number of which `worker::seed()` is made in the map's tasks, together with
            /// the position of the input. So another run of the program gets the same seeds for
            /// the same inputs, however many workers it has, and whichever of them dies.
            ///
            /// A map by a [key](crate::Key) or a name cannot have one: its results are errors.
            pub fn seed(mut self, seed: u64) -> Self {
                self.chunks.set_seed(seed);
                self
            }

            /// Sets the number of retries of each item; see
            /// [`TaskBuilder::retries`](crate::TaskBuilder::retries).
            pub fn retries(mut self, retries: u32) -> Self {
                self.chunks.retries = retries;
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

impl_settings!(Map);
impl_settings!(MapUnordered);

impl Order {
    /// Returns the results to yield next, if they are among those that have settled.
    fn next(&mut self, settled: &mut VecDeque<Results>) -> Option<Results> {
        let Self { next, early } = self;
        early.extend(settled.drain(..).map(|results| (results.position(), results)));
        let results = early.remove(next)?;
        *next += results.len();
        Some(results)
    }
}

impl<I, R> Iterator for Map<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let Self { chunks, order, .. } = self;
        chunks.next(|settled| order.next(settled))
    }
}

impl<I, R> Iterator for MapUnordered<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.chunks.next(VecDeque::pop_front)
    }
}
