//! Handles as a stream, in the order in which their tasks finish.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use super::AsCompleted;
use crate::as_stream::AsStream;
use crate::handle::Handle;
use crate::waiting::Wait;

impl<R> AsCompleted<R> {
    /// Returns the handles as a `futures_core::Stream`, for any runtime. The outcomes have arrived,
    /// so that awaiting a yielded handle does not wait.
    pub fn into_stream(self) -> AsStream<Self> {
        AsStream(self)
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<Option<Handle<R>>> {
        if self.pending == 0 || !self.origin.is_here() {
            return Poll::Ready(self.next());
        }
        if self.completions.is_pending() {
            self.completions.add_waker(context.waker()).into_iter().for_each(Waker::wake);
            // It may have arrived before the registration.
            if self.completions.is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(self.next())
    }
}

impl<R> Stream for AsStream<AsCompleted<R>> {
    type Item = Handle<R>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Handle<R>>> {
        self.0.poll_next(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
