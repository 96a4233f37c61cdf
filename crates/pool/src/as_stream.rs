//! Iterators of results and handles as streams.

/// A [`Map`], a [`MapUnordered`] or an [`AsCompleted`] as a `futures_core::Stream`; returned by
/// their method `into_stream`.
///
/// It works with any runtime, and dropping it has the same effect as dropping the iterator.
///
/// [`AsCompleted`]: crate::AsCompleted
/// [`Map`]: crate::Map
/// [`MapUnordered`]: crate::MapUnordered
#[derive(Debug)]
#[must_use = "a stream does nothing until it is polled"]
pub struct AsStream<I>(pub(crate) I);

/// Nothing in it is pinned.
impl<I> Unpin for AsStream<I> {}
