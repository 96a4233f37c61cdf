//! Handles as a stream, in the order in which their tasks finish.

use std::task::{Context, Poll, Waker};

use super::AsCompleted;
use crate::as_stream::{AsStream, PollNext};
use crate::backend::Facts;
use crate::handle::Handle;
use crate::waiting::Wait;

impl<R, F: Facts> AsCompleted<R, F> {
    /// Returns the handles as a `futures_core::Stream`, for any runtime. The outcomes have arrived,
    /// so that awaiting a yielded handle does not wait.
    pub fn into_stream(self) -> AsStream<Self> {
        AsStream::new(self)
    }
}

impl<R, F: Facts> PollNext for AsCompleted<R, F> {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Handle<R, F>>> {
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
