//! Iterators of results and handles as streams.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

/// A map or an [`AsCompleted`](crate::AsCompleted) as a `futures_core::Stream`; returned by their
/// method `into_stream`.
///
/// It works with any runtime, and dropping it has the same effect as dropping the iterator.
#[derive(Debug)]
#[must_use = "a stream does nothing until it is polled"]
pub struct AsStream<I>(I);

/// An iterator whose next item a future can wait for.
#[doc(hidden)]
pub trait PollNext: Iterator {
    /// Returns the next item, or wakes `context` when it may have arrived.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>>;
}

impl<I: PollNext> AsStream<I> {
    /// Wraps an iterator.
    #[doc(hidden)]
    pub fn new(iterator: I) -> Self {
        Self(iterator)
    }
}

impl<I: PollNext> Stream for AsStream<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<I::Item>> {
        self.0.poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Nothing in it is pinned.
impl<I> Unpin for AsStream<I> {}
