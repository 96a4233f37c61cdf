//! Waiting for the results of a map as a future.

use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Chunks;
use crate::error::TaskError;
use crate::map::chunk::Results;
use crate::when_full::WhenFull;
use brigade_task::backend::Wait;
use brigade_task::map::{PollChunks, Turn};

impl<I: Iterator<Item: Serialize + 'static>> PollChunks for Chunks<'_, I> {
    fn poll_next<R: DeserializeOwned + 'static, T: Turn<Results>>(
        &mut self,
        context: &Context<'_>,
        turn: &mut T,
    ) -> Poll<Option<Result<R, TaskError>>> {
        if self.frames.pool.shared().is_forked() {
            return Poll::Ready(self.frames.forked().map(Err));
        }
        // A future must not block.
        self.frames.when_full = WhenFull::Exceed;
        let mut is_registered = false;
        loop {
            if let Some(result) = self.try_next(turn, None) {
                return Poll::Ready(Some(result));
            }
            if self.frames.under_way.is_empty() && self.frames.settled.is_empty() {
                return Poll::Ready(None);
            }
            if !is_registered {
                let surplus = self.frames.owner.completions.add_waker(context.waker());
                self.frames.pool.shared().run_wakers(surplus);
                is_registered = true;
            } else if self.frames.owner.completions.is_pending() {
                return Poll::Pending;
            }
        }
    }
}
