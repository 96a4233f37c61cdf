//! Waiting for the results of a map as a future.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Chunks;
use crate::error::TaskError;
use crate::map::chunk::Results;
use crate::waiting::Wait;
use crate::wakers::Wakers;

impl<I> Chunks<'_, I> {
    /// Makes all chunks wake the futures that wait for results.
    pub(in crate::map) fn wake_futures(&mut self) {
        if self.pool.shared().is_forked() || self.wakers.is_some() {
            return;
        }
        let wakers = Arc::<Wakers>::default();
        let waker = Waker::from(Arc::clone(&wakers));
        self.wakers = Some(wakers);
        self.pool.shared().without_events(|| {
            for cell in self.owner.take() {
                let bytes = cell.with_chunk_progress(|chunk| chunk.bytes).unwrap_or(0);
                self.add(cell, bytes);
            }
            for chunk in self.under_way.values() {
                chunk.cell.set_waker(&waker);
            }
        });
    }
}

impl<I: Iterator> Chunks<'_, I>
where
    I::Item: Serialize + 'static,
{
    /// Returns the next result as [`next`](Self::next) does, for a future. Call
    /// [`wake_futures`](Self::wake_futures) first.
    pub(in crate::map) fn poll_next<R: DeserializeOwned + 'static>(
        &mut self,
        context: &Context<'_>,
        mut choose: impl FnMut(&mut VecDeque<Results>) -> Option<Results>,
    ) -> Poll<Option<Result<R, TaskError>>> {
        if self.pool.shared().is_forked() {
            return Poll::Ready(self.forked().map(Err));
        }
        let mut is_registered = false;
        loop {
            if let Some(result) = self.try_next(&mut choose) {
                return Poll::Ready(Some(result));
            }
            if self.under_way.is_empty() && self.settled.is_empty() {
                return Poll::Ready(None);
            }
            match &self.wakers {
                // Something may have arrived before the registration.
                _ if is_registered && !self.owner.completions.is_pending() => {}
                Some(wakers) if !is_registered => {
                    self.pool.shared().run_wakers(wakers.add(context.waker()));
                    is_registered = true;
                }
                _ => return Poll::Pending,
            }
        }
    }
}
