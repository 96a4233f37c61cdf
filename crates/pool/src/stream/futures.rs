//! A stream as a `futures_core::Stream`, for any runtime.

use std::pin::Pin;
use std::task::{Context, Poll};

use serde::de::DeserializeOwned;

use super::{Item, Stream};

impl<A, R: DeserializeOwned + 'static> futures_core::Stream for Stream<A, R> {
    type Item = Item<R>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<R>>> {
        self.poll_recv(context)
    }
}

/// Several consumers may share a stream.
impl<A, R: DeserializeOwned + 'static> futures_core::Stream for &Stream<A, R> {
    type Item = Item<R>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<R>>> {
        self.poll_recv(context)
    }
}
