//! A task's record, shared by its executor and its handles: it gets one outcome, and wakes all that
//! wait for it. It is a promise and its futures in one cell, behind one lock.
//!
//! The outcome is stored once, by the thread that learns it, and taken once, by a handle. Neither
//! makes a system call unless a thread sleeps. No user code runs under the lock, and the only lock
//! that the promise takes under it is that of the queue of callbacks.
//!
//! Whoever waits registers, looks again, and only then sleeps. The outcome is stored before those
//! that are registered are taken. So it is either seen by that look, or wakes them.

#[cfg(all(loom, test))]
mod loom;

mod content;

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::sync::Arc;
use std::task::Waker;

use brigade_wire::TaskId;

use crate::backend::Backend;
use crate::callbacks::{Callback, Callbacks};
use crate::completion_queue::CompletionQueue;
use crate::outcome::{Outcome, OutcomeKind, Value};
use crate::sync::{AtomicBool, Guard, Guarded, Ordering};
use crate::waiting::{Sleeper, Wait};
pub use content::Content;

/// An owner of a task's record.
pub struct Promise<F: Facts>(Guarded<F, Content<F>>);

/// The part of a task's record that is not behind its lock, and the way to the executor.
pub trait Facts: fmt::Debug + Sized + Send + Sync + 'static {
    /// The argument of a task, if it is not just a few bytes.
    type Argument: fmt::Debug + Send;
    /// The encoded value of a task.
    type Value: Value;

    /// Returns the task's id.
    fn id(&self) -> TaskId;
    /// Returns the mark that the promise sets, under the lock, once the outcome is stored.
    fn ended(&self) -> &AtomicBool;
    /// Returns the label of the task.
    fn label(&self) -> Option<&Arc<str>>;
    /// Returns the state of the executor.
    fn executor(&self) -> &Arc<dyn Backend<Self>>;
}

impl<F: Facts> Promise<F> {
    /// Creates the record of a task without an outcome.
    #[inline]
    pub fn new(facts: F, content: Content<F>) -> Self {
        Self(Guarded::new(facts, content))
    }

    /// Locks the content. Nothing that panics may run under this lock.
    #[inline]
    pub fn content(&self) -> Guard<'_, F, Content<F>> {
        Guarded::lock(&self.0)
    }

    /// Returns the content without locking it, if there is no other owner.
    #[inline]
    pub fn content_mut(&mut self) -> Option<&mut Content<F>> {
        Guarded::get_mut(&mut self.0)
    }

    /// Returns another owner, for less than `clone` if there is only this one so far.
    #[inline]
    #[must_use]
    pub fn share(&mut self) -> Self {
        Self(Guarded::share(&mut self.0))
    }

    /// Returns `true` if this is the only owner.
    pub fn has_one_owner(&self) -> bool {
        Guarded::is_only_owner(&self.0)
    }

    /// Stores the outcome and returns the former content, whose waiters the calling thread has to
    /// notify.
    ///
    /// A second outcome would be a mistake of the executor; it is ignored.
    #[must_use]
    #[inline]
    pub fn complete(&self, mut outcome: Outcome<F::Value>) -> Option<Content<F>> {
        let mut content = self.content();
        if !content.is_pending() {
            debug_assert!(false, "a second outcome for {}", self.id());
            return None;
        }
        let callbacks = content.waiters().and_then(|waiters| waiters.callbacks.as_mut());
        if let Some((queue, callbacks)) = callbacks {
            for callback in callbacks.drain(..) {
                queue.push(callback, share(&mut outcome));
            }
        }
        let before = mem::replace(&mut *content, outcome.into());
        self.ended().store(true, Ordering::Release);
        Some(before)
    }

    /// Returns the kind of the outcome if it has arrived, even if it has been taken since.
    pub fn outcome_kind(&self) -> Option<OutcomeKind> {
        if self.is_pending() { None } else { self.content().outcome_kind() }
    }

    /// Takes the outcome if it has arrived and was not taken before.
    #[inline]
    pub fn try_take(&self) -> Option<Outcome<F::Value>> {
        self.content().take_outcome()
    }

    /// The same as `try_take`, without the lock if there is no other owner.
    #[inline]
    pub fn try_take_mut(&mut self) -> Option<Outcome<F::Value>> {
        match self.content_mut() {
            Some(content) => content.take_outcome(),
            None => self.try_take(),
        }
    }

    /// Takes the outcome, or sets `waker` and returns `Ok(None)`.
    ///
    /// # Errors
    /// If the outcome was taken before.
    #[expect(clippy::result_unit_err, reason = "there is one reason")]
    pub fn poll(&self, waker: &Waker) -> Result<Option<Outcome<F::Value>>, ()> {
        if self.is_pending() {
            self.set_waker(waker);
        }
        if self.is_pending() {
            return Ok(None);
        }
        self.try_take().map(Some).ok_or(())
    }

    /// Sets the waker for the arrival of the outcome. Does nothing if it has arrived.
    pub fn set_waker(&self, waker: &Waker) {
        let waker = waker.clone();
        let mut content = self.content();
        let replaced = match content.waiters_of(self.id()) {
            Some(waiters) => waiters.waker.replace(waker),
            None => Some(waker),
        };
        drop(content);
        // Dropping a waker runs user code, which must not happen under the lock.
        drop(replaced);
    }

    /// Adds `token` to `completions` once the outcome has arrived, which may be immediately.
    pub fn watch(&self, completions: &Arc<CompletionQueue>, token: u64) {
        let mut content = self.content();
        if let Some(waiters) = content.waiters_of(self.id()) {
            return waiters.completions.push((Arc::clone(completions), token));
        }
        drop(content);
        // Whoever waits on the queue checks it before it sleeps, and begins to wait later, so
        // nobody needs to be woken.
        let _ = completions.add(token);
    }

    /// Undoes `watch`.
    pub fn unwatch(&self, completions: &Arc<CompletionQueue>) {
        let mut content = self.content();
        if let Some(waiters) = content.waiters() {
            waiters.completions.retain(|(other, _)| !Arc::ptr_eq(other, completions));
        }
        content.free_waiters();
    }

    /// Pushes a registered callback to its queue once the outcome has arrived, which may be
    /// immediately. Returns the callback if the outcome was taken before.
    pub(crate) fn on_done(
        &self,
        callback: Callback<F::Value>,
        queue: &Arc<Callbacks<F::Value>>,
    ) -> Result<(), Callback<F::Value>> {
        let mut content = self.content();
        if let Some(waiters) = content.waiters_of(self.id()) {
            let (_, list) =
                waiters.callbacks.get_or_insert_with(|| (Arc::clone(queue), Vec::new()));
            list.push(callback);
            return Ok(());
        }
        let Some(mut outcome) = content.take_outcome() else { return Err(callback) };
        queue.push(callback, share(&mut outcome));
        *content = outcome.into();
        drop(content);
        queue.wake();
        Ok(())
    }
}

/// Returns the same outcome again. The encoded value is shared, and each owner decodes it.
fn share<V: Value>(outcome: &mut Outcome<V>) -> Outcome<V> {
    match outcome {
        Ok(value) => Ok(value.share()),
        Err(error) => Err(error.clone()),
    }
}

impl<F: Facts> Wait for Promise<F> {
    #[inline]
    fn is_pending(&self) -> bool {
        !self.ended().load(Ordering::Acquire)
    }

    #[inline]
    fn is_over(&self) -> bool {
        !self.is_pending()
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        // Whoever waits looks again before it sleeps, so it notices that the outcome has arrived.
        if let Some(waiters) = self.content().waiters_of(self.id()) {
            waiters.sleeper = Some(sleeper);
        }
    }

    fn clear_sleeper(&self) {
        if let Some(waiters) = self.content().waiters() {
            waiters.sleeper = None;
        }
    }
}

impl<F: Facts> Clone for Promise<F> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<F: Facts> Deref for Promise<F> {
    type Target = F;

    #[inline]
    fn deref(&self) -> &F {
        &self.0
    }
}

impl<F: Facts> fmt::Debug for Promise<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Promise").field(&**self).finish()
    }
}

#[cfg(test)]
mod tests;
