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

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::sync::{Condvar, Mutex, MutexGuard};
use brigade_wire::TaskId;
use tracing::{Level, error};

use super::owner;
use super::shared::Shared;
use crate::cores::CoreLease;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// A piece of user code to call.
pub(super) enum UserCode {
    Waker(TaskId, Waker),
    /// Dropping a lease may call the hook of code that waits for cores.
    Lease(Arc<CoreLease>),
}

/// User code that waits for the collector thread.
#[derive(Default)]
pub(super) struct UserCodeQueue {
    /// `true` while the queue is not empty; written under the lock.
    has_some: AtomicBool,
    state: Mutex<State>,
    added: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<UserCode>,
    ended: bool,
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
        match self.user_code.push(user_code) {
            Some(refused) => self.call(refused),
            None => {
                if let Some(collecting) = &self.collecting {
                    collecting.doorbell.thread().wake();
                }
            }
        }
    }

    /// Runs the queued user code. Called on the collector thread.
    pub(super) fn run_queued_user_code(&self) {
        while self.user_code.has_some.load(Ordering::Acquire) {
            let waiting = self.user_code.take();
            self.call(waiting);
        }
    }

    pub(super) fn call(&self, user_code: Vec<UserCode>) {
        let nested = RUNS.replace(true);
        for user_code in user_code {
            match user_code {
                UserCode::Waker(task, waker) => {
                    if let Err(message) = catch_panic(|| waker.wake()) {
                        self.output.note(
                            Level::ERROR,
                            move |pool| error!(pool, %task, message, "waker panicked"),
                        );
                    }
                }
                UserCode::Lease(lease) => {
                    if let Err(message) = catch_panic(|| drop(lease)) {
                        self.output.note(Level::ERROR, move |pool| {
                            error!(pool, message, "hook for returned cores panicked");
                        });
                    }
                }
            }
        }
        RUNS.set(nested);
    }
}

impl UserCodeQueue {
    /// Returns the user code if the collector thread has ended.
    fn push(&self, user_code: Vec<UserCode>) -> Option<Vec<UserCode>> {
        let mut state = self.lock();
        if state.ended {
            return Some(user_code);
        }
        state.waiting.extend(user_code);
        self.has_some.store(true, Ordering::Release);
        self.added.notify_one();
        None
    }

    fn take(&self) -> Vec<UserCode> {
        let mut state = self.lock();
        self.has_some.store(false, Ordering::Release);
        mem::take(&mut state.waiting)
    }

    /// Waits for user code, on a collector thread that has nothing else to do. Returns `false` when
    /// there will be no more.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended {
            state = self.added.wait(state);
        }
        !state.waiting.is_empty()
    }

    /// Closes the queue.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.added.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock()
    }
}
