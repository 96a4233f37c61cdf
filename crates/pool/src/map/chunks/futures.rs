//! Waiting for the results of a map as a future.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Chunks;
use crate::error::TaskError;
use crate::map::chunk::Results;
use crate::when_full::WhenFull;
use brigade_task::backend::Wait;

impl<I: Iterator> Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    /// Returns the next result as [`next`](Self::next) does, for a future.
    pub(in crate::map) fn poll_next<R: DeserializeOwned + 'static>(
        &mut self,
        context: &Context<'_>,
        mut choose: impl FnMut(&mut VecDeque<Results>) -> Option<Results>,
    ) -> Poll<Option<Result<R, TaskError>>> {
        if self.pool.shared().is_forked() {
            return Poll::Ready(self.forked().map(Err));
        }
        // A future must not block.
        self.when_full = WhenFull::Exceed;
        let mut is_registered = false;
        loop {
            if let Some(result) = self.try_next(&mut choose) {
                return Poll::Ready(Some(result));
            }
            if self.under_way.is_empty() && self.settled.is_empty() {
                return Poll::Ready(None);
            }
            if !is_registered {
                let surplus = self.owner.completions.add_waker(context.waker());
                self.pool.shared().run_wakers(surplus);
                is_registered = true;
            } else if self.owner.completions.is_pending() {
                return Poll::Pending;
            }
        }
    }
}
