//! Waiting for the outcome of a task.

use std::sync::Arc;
use std::task::Waker;

use super::TaskCell;
use crate::completion_queue::CompletionQueue;
use crate::payload::Outcome;
use crate::sync::Ordering;
use crate::waiting::{Sleeper, Wait};

impl TaskCell {
    /// Adds `token` to `completions` once the outcome has arrived, which may be immediately, and
    /// for each item that the task emits.
    pub(crate) fn watch(&self, completions: &Arc<CompletionQueue>, token: u64) {
        if let Some(emitted) = self.emitted() {
            emitted.watch(completions, token);
        }
        let mut content = self.content();
        if let Some(waiters) = content.waiters_of(self.id) {
            return waiters.completions.push((Arc::clone(completions), token));
        }
        drop(content);
        // Whoever waits on the queue checks it before it sleeps, and begins to wait later, so
        // nobody needs to be woken.
        let _ = completions.add(token);
    }

    /// Undoes `watch`.
    pub(crate) fn unwatch(&self, completions: &Arc<CompletionQueue>) {
        let mut content = self.content();
        if let Some(waiters) = content.waiters() {
            waiters.completions.retain(|(other, _)| !Arc::ptr_eq(other, completions));
        }
        content.free_waiters();
    }

    /// Sets the waker for the arrival of the outcome. Does nothing if it has arrived.
    pub(crate) fn set_waker(&self, waker: &Waker) {
        let waker = waker.clone();
        let mut content = self.content();
        let replaced = match content.waiters_of(self.id) {
            Some(waiters) => waiters.waker.replace(waker),
            None => Some(waker),
        };
        drop(content);
        // Dropping a waker runs user code, which must not happen under the lock.
        drop(replaced);
    }

    /// Takes the outcome, or sets `waker` and returns `Ok(None)`. Returns `Err` if the outcome was
    /// taken before.
    pub(crate) fn poll(&self, waker: &Waker) -> Result<Option<Outcome>, ()> {
        if self.is_pending() {
            self.set_waker(waker);
        }
        if self.is_pending() {
            return Ok(None);
        }
        self.try_take().map(Some).ok_or(())
    }
}

impl Wait for TaskCell {
    #[inline]
    fn is_pending(&self) -> bool {
        !self.ended.load(Ordering::Acquire)
    }

    #[inline]
    fn is_over(&self) -> bool {
        !self.is_pending()
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        // Whoever waits looks again before it sleeps, so it notices that the outcome has arrived.
        if let Some(waiters) = self.content().waiters_of(self.id) {
            waiters.sleeper = Some(sleeper);
        }
    }

    fn clear_sleeper(&self) {
        if let Some(waiters) = self.content().waiters() {
            waiters.sleeper = None;
        }
    }
}
