//! Maps as streams of results.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Map, MapUnordered};
use crate::as_stream::AsStream;
use crate::error::TaskError;

impl<F, I: Iterator, R> Map<'_, F, I, R> {
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
        AsStream(self)
    }
}

impl<F, I: Iterator, R> MapUnordered<'_, F, I, R> {
    /// Returns the results as a `futures_core::Stream`, as [`Map::into_stream`] does.
    pub fn into_stream(self) -> AsStream<Self> {
        AsStream(self)
    }
}

impl<F, I, R> Stream for AsStream<Map<'_, F, I, R>>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Map { chunks, order, .. } = &mut self.0;
        chunks.poll_next(context, |settled| order.next(settled))
    }
}

impl<F, I, R> Stream for AsStream<MapUnordered<'_, F, I, R>>
where
    I: Iterator,
    I::Item: Serialize + 'static,
    R: DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.chunks.poll_next(context, VecDeque::pop_front)
    }
}
