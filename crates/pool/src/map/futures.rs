//! Maps as streams of results.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Map, MapUnordered};
use brigade_task::{AsStream, PollNext};

impl<I, R> Map<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    /// Returns the results as a `futures_core::Stream`, for any runtime.
    ///
    /// Polling takes inputs from the iterator, which should not block. It does not wait for room in
    /// the pool's queue: it may exceed the limit by three chunks of inputs for each worker.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # async fn all(pool: brigade::Pool) {
    /// use futures::StreamExt;
    ///
    /// let squares: Vec<_> = pool.map(square, 1..10).into_stream().collect().await;
    /// # }
    /// ```
    pub fn into_stream(self) -> AsStream<Self> {
        AsStream::new(self)
    }
}

impl<I, R> MapUnordered<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    /// Returns the results as a `futures_core::Stream`, as [`Map::into_stream`] does.
    pub fn into_stream(self) -> AsStream<Self> {
        AsStream::new(self)
    }
}

impl<I, R> PollNext for Map<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { chunks, order, .. } = self;
        chunks.poll_next(context, |settled| order.next(settled))
    }
}

impl<I, R> PollNext for MapUnordered<'_, I, R>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next(context, VecDeque::pop_front)
    }
}
