//! Code of users that the pool calls: wakers of futures, and the hooks of those who wait for cores.
//!
//! It may panic, take long, and ask the pool; it may even wait for tasks, or for room in the queue. So it runs
//! - on the thread of a caller, which is the caller's own. One that listens for everybody hands over before: see `collect`;
//! - else on the collector thread. What it waits for there it brings about itself, as a caller;
//! - never on a thread that deadlines, deaths and starts depend on, but for hooks, which are to do no more than wake somebody. Such a thread gives it to the collector thread, which
//!   with ipc links does nothing else. So does a thread that runs such code already: it never runs nested.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use brigade_cores::CoreLease;
use brigade_wire::TaskId;
use tracing::{Level, error};

use super::owner;
use super::shared::Shared;
use crate::contained::contain;

thread_local! {
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Something to call.
pub(super) enum Foreign {
    Waker(TaskId, Waker),
    /// To drop it may be to call the hook of who waits for cores.
    Lease(Arc<CoreLease>),
}

/// What waits for the collector thread.
#[derive(Default)]
pub(super) struct ForeignQueue {
    /// Whether there is anything; written under the lock.
    some: AtomicBool,
    state: Mutex<State>,
    come: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Foreign>,
    ended: bool,
}

/// Whether this thread runs code of users, which the pool has called.
pub(super) fn is_running() -> bool {
    RUNS.get()
}

impl Shared {
    pub(super) fn run_foreign(&self, foreign: Vec<Foreign>) {
        if !owner::must_not_run_foreign_code() && !is_running() {
            return self.call(foreign);
        }
        match self.foreign.give(foreign) {
            Some(refused) => self.call(refused),
            None => {
                if let Some(collecting) = &self.collecting {
                    collecting.doorbell.thread().wake();
                }
            }
        }
    }

    /// On the collector thread: runs what others have left to it.
    pub(super) fn run_waiting_foreign(&self) {
        while self.foreign.some.load(Ordering::Acquire) {
            let waiting = self.foreign.take();
            self.call(waiting);
        }
    }

    pub(super) fn call(&self, foreign: Vec<Foreign>) {
        let nested = RUNS.replace(true);
        for foreign in foreign {
            match foreign {
                Foreign::Waker(task, waker) => {
                    if let Err(message) = contain(|| waker.wake()) {
                        self.console.note(
                            Level::ERROR,
                            move |pool| error!(pool, %task, message, "waker panicked"),
                        );
                    }
                }
                Foreign::Lease(lease) => {
                    if let Err(message) = contain(|| drop(lease)) {
                        self.console.note(Level::ERROR, move |pool| {
                            error!(
                                pool,
                                message, "the hook of somebody who waits for cores panicked"
                            );
                        });
                    }
                }
            }
        }
        RUNS.set(nested);
    }
}

impl ForeignQueue {
    /// Gives it back when the collector thread has ended.
    fn give(&self, foreign: Vec<Foreign>) -> Option<Vec<Foreign>> {
        let mut state = self.lock();
        if state.ended {
            return Some(foreign);
        }
        state.waiting.extend(foreign);
        self.some.store(true, Ordering::Release);
        self.come.notify_one();
        None
    }

    fn take(&self) -> Vec<Foreign> {
        let mut state = self.lock();
        self.some.store(false, Ordering::Release);
        mem::take(&mut state.waiting)
    }

    /// Waits for something, on a collector thread that has nothing else to do; false when nothing comes any more.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.ended {
            state = self.come.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.waiting.is_empty()
    }

    /// Nothing more is taken.
    pub(super) fn end(&self) {
        self.lock().ended = true;
        self.come.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
