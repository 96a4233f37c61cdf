//! Runs user code that the pool calls: wakers of futures, and hooks of code that waits for cores.
//!
//! User code may panic, take long, and use the pool; it may even wait for tasks or for room in the
//! queue. Therefore it runs
//! - on the caller's own thread, if a caller triggers it. A listening caller hands over first, see
//!   `collect`;
//! - otherwise on the collector thread. If it waits for tasks there, it collects their outcomes
//!   itself, as any caller does;
//! - never on a thread that deadlines, deaths and starts depend on, except for hooks, which must do
//!   no more than wake a thread. Such a thread hands user code to the collector thread, which does
//!   nothing else if links are not rings;
//! - never nested: a thread that already runs user code hands it to the collector thread too.

pub(super) mod queue;

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::task::Waker;

use brigade_supervisor::note;
use brigade_sys::catch_panic::catch_panic;
use tracing::field;

use super::owner;
use super::shared::Shared;
use super::user_code::queue::UserCode;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if the current thread runs user code that the pool has called.
pub(super) fn is_running() -> bool {
    RUNS.get()
}

impl Shared {
    pub(super) fn run_user_code(&self, user_code: Vec<UserCode>) {
        if !owner::must_not_run_user_code() && !is_running() {
            return self.call(user_code);
        }
        if let Some(refused) = self.user_code.push(user_code) {
            self.call(refused);
        } else if let Some(collecting) = &self.collecting {
            collecting.doorbell.thread().wake();
        }
    }

    /// Runs wakers that belong to no single task.
    pub(crate) fn run_wakers(&self, wakers: Vec<Waker>) {
        if !wakers.is_empty() {
            self.run_user_code(wakers.into_iter().map(|it| UserCode::Waker(None, it)).collect());
        }
    }

    /// Runs the queued user code. Called on the collector thread.
    pub(super) fn run_queued_user_code(&self) {
        while self.user_code.has_some.load(Ordering::Acquire) {
            let waiting = self.user_code.take();
            self.call(waiting);
        }
    }

    /// Calls user code. Callers do not rely on the collector thread in the meantime.
    pub(super) fn call(&self, user_code: Vec<UserCode>) {
        let is_away = owner::is_collector() && !user_code.is_empty() && !is_running();
        if is_away {
            self.set_collector_is_away(true);
        }
        self.woken.wake(user_code.iter().filter_map(|user_code| match user_code {
            UserCode::Waker(task, _) => *task,
            UserCode::Lease(_) => None,
        }));
        let nested = RUNS.replace(true);
        for user_code in user_code {
            let (called, task, what) = match user_code {
                UserCode::Waker(task, waker) => (catch_panic(|| waker.wake()), task, "waker"),
                UserCode::Lease(lease) => {
                    (catch_panic(|| drop(lease)), None, "hook for returned cores")
                }
            };
            if let Err(message) = called {
                let task = task.map(field::display);
                note!(self.supervisor.output, ERROR, task, message, "{what} panicked");
            }
        }
        RUNS.set(nested);
        if is_away {
            self.set_collector_is_away(false);
        }
    }

    fn set_collector_is_away(&self, is_away: bool) {
        let mut core = self.lock();
        core.listeners.set_thread_is_away(is_away);
        core.call_collector(self);
        drop(core);
        if let Some(collecting) = &self.collecting {
            collecting.wake_queue.set_unlimited(is_away);
        }
    }
}
