//! Work to be done after the core's lock is released.
//!
//! User code never runs under that lock, nor on a thread that others depend on. Urgent work comes
//! first: the reaper is woken, workers are killed, waiters are notified. Then large memory is
//! freed, and wakers run last, on a thread that may run them; see `run_deferred`.

use std::sync::Arc;

use brigade_supervisor::{Notes, WorkerProcess};
use tracing::Level;

use crate::cell::{TaskCell, Waiters};
use crate::payload::Argument;

/// Work gathered under the core's lock. See the module's documentation.
#[derive(Default)]
pub(super) struct Deferred {
    pub(super) to_notify: Vec<Waiters>,
    /// Workers, and `true` if their deaths may be reported at once.
    pub(super) to_kill: Vec<(Arc<WorkerProcess>, bool)>,
    pub(super) notes: Notes,
    pub(super) to_free: Vec<ToFree>,
    pub(super) wake_reaper: bool,
    pub(super) ended: bool,
}

/// Memory that is not freed under the lock.
pub(super) enum ToFree {
    Argument(Argument),
    /// Possibly the last reference to a task with its outcome.
    Task(Arc<TaskCell>),
}

impl ToFree {
    pub(super) fn is_slow(&self) -> bool {
        match self {
            Self::Argument(argument) => argument.size() >= SLOW_TO_FREE,
            // Otherwise the last owner frees it.
            Self::Task(task) => Arc::strong_count(task) == 1,
        }
    }
}

/// Returning this many bytes to the system takes a quarter of a millisecond.
const SLOW_TO_FREE: usize = 1 << 20;

impl Deferred {
    /// Cancels waking the reaper, which already knows its next deadline.
    pub(super) fn skip_reaper_wake(&mut self) {
        self.wake_reaper = false;
    }

    pub(super) fn note(&mut self, level: Level, emit: impl FnOnce(&str) + Send + 'static) {
        self.notes.add(level, emit);
    }

    pub(super) fn notify(&mut self, waiters: Waiters) {
        self.to_notify.push(waiters);
    }

    /// Kills a worker later, because finding the processes that it has started takes long.
    pub(super) fn kill(&mut self, process: Arc<WorkerProcess>, at_once: bool) {
        self.to_kill.push((process, at_once));
    }

    pub(super) fn free(&mut self, to_free: ToFree) {
        self.to_free.push(to_free);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { to_notify, to_kill, notes, to_free, wake_reaper, ended } = self;
        to_notify.is_empty()
            && to_kill.is_empty()
            && notes.is_empty()
            && to_free.is_empty()
            && !wake_reaper
            && !ended
    }

    /// Returns `true` if user code has to run, which may take long.
    pub(super) fn has_user_code(&self) -> bool {
        self.to_notify.iter().any(Waiters::has_waker)
    }

    /// Returns the waiters to notify.
    #[cfg(all(loom, test))]
    pub(super) fn into_waiters(self) -> Vec<Waiters> {
        self.to_notify
    }
}
