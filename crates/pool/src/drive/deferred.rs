//! Work to be done after the core's lock is released.
//!
//! User code never runs under that lock, nor on a thread that others depend on. Urgent work comes
//! first: the reaper is woken, workers are killed, waiters are notified. Then large memory is
//! freed, and wakers run last, on a thread that may run them; see `user_code`.

use std::sync::Arc;

use brigade_wire::WorkerId;
use tracing::Level;

use super::notes::Notes;
use super::owner;
use super::shared::Shared;
use super::user_code::UserCode;
use super::worker_slot::ProcessState;
use crate::cell::{TaskCell, Waiters, Wakeups};
use crate::payload::Argument;

/// Work gathered under the core's lock. See the module's documentation.
#[derive(Default)]
pub(super) struct Deferred {
    to_notify: Vec<Waiters>,
    to_kill: Vec<(WorkerId, Arc<ProcessState>, bool)>,
    notes: Notes,
    to_free: Vec<ToFree>,
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
    fn is_slow(&self) -> bool {
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
    pub(super) fn kill(&mut self, worker: WorkerId, state: Arc<ProcessState>, at_once: bool) {
        self.to_kill.push((worker, state, at_once));
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

    pub(super) fn run(self, shared: &Shared) {
        if self.wake_reaper {
            shared.reaper.wake();
        }
        for (worker, state, at_once) in self.to_kill {
            shared.kill_worker(worker, &state, at_once);
        }
        shared.output.note_all(self.notes);
        let mut user_code = Vec::new();
        for waiters in self.to_notify {
            let Wakeups { ring_doorbell, waker } = waiters.notify();
            if ring_doorbell && let Some(collecting) = &shared.collecting {
                collecting.doorbell.caller().wake();
            }
            user_code.extend(waker.map(|(task, waker)| UserCode::Waker(task, waker)));
        }
        let mut to_free = self.to_free;
        if owner::is_depended_on() {
            to_free.retain(ToFree::is_slow);
            if !to_free.is_empty() {
                shared.cleaner.free(to_free);
            }
        } else {
            drop(to_free);
        }
        if !user_code.is_empty() {
            shared.run_user_code(user_code);
        }
        if self.ended {
            shared.release_threads();
        }
    }
}
