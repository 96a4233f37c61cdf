//! The callbacks of a pool's handles, and the thread that runs them.
//!
//! A callback is *registered* until it has run. It is *due* from the moment at which its task's outcome is known: whoever
//! learns that puts it into the queue, under the task's lock, so that the callbacks of one handle are in the order of their
//! registration. The thread takes them from there, one after the other, and holds no lock while one runs.
//!
//! Who starts and ends the thread: the first registration starts it, and the thread ends when the pool has *ended* and
//! nothing is registered. Both are decided under the lock of the state, so a registration either finds a thread that will
//! not end before its callback has run, or starts one; also after the pool's end, for a handle that outlives the pool.
//!
//! Locks: `thread` comes before `state`; `state` is taken under the locks of the core and of a task, and is a leaf.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use brigade_sys::fork::Origin;
use brigade_wire::TaskId;
use tracing::{error, warn};

use crate::cell::RawOutcome;
use crate::contained::contain;

thread_local! {
    /// Whether this is a thread that runs callbacks, of whichever pool.
    static RUNS_CALLBACKS: Cell<bool> = const { Cell::new(false) };
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Callbacks {
    pool: String,
    state: Mutex<State>,
    /// The thread waits here for callbacks that are due.
    work: Condvar,
    /// Shutdowns wait here for the end of the thread.
    rest: Condvar,
    /// Locked while the thread is started.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct State {
    due: Vec<(Callback, RawOutcome)>,
    registered: usize,
    /// Whether there is a thread that has not decided to end.
    runs: bool,
    /// Whether all tasks that there will ever be have their outcomes.
    ended: bool,
}

/// What is to be done with one task's outcome.
pub(crate) struct Callback {
    pub(crate) task: TaskId,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) run: Box<dyn FnOnce(RawOutcome) + Send>,
}

impl Callbacks {
    pub(crate) fn new(pool: String) -> Arc<Self> {
        Arc::new(Self {
            pool,
            state: Mutex::default(),
            work: Condvar::new(),
            rest: Condvar::new(),
            thread: Mutex::new(None),
        })
    }

    /// Counts a callback that is about to be registered, and sees to the thread that will run it.
    pub(crate) fn register(self: &Arc<Self>) -> io::Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.lock();
        state.registered += 1;
        if mem::replace(&mut state.runs, true) {
            return Ok(());
        }
        drop(state);
        let this = Arc::clone(self);
        let started =
            thread::Builder::new().name("brigade-callbacks".to_owned()).spawn(move || this.run());
        match started {
            Ok(started) => {
                *thread = Some(started);
                Ok(())
            }
            Err(error) => {
                let mut state = self.lock();
                state.registered -= 1;
                state.runs = false;
                self.rest.notify_all();
                Err(error)
            }
        }
    }

    /// Undoes `register`, for a callback that will not be due.
    pub(crate) fn deregister(&self) {
        self.lock().registered -= 1;
        self.wake();
    }

    /// Puts a registered callback into the queue; the thread is still to be woken.
    pub(crate) fn push(&self, callback: Callback, outcome: RawOutcome) {
        self.lock().due.push((callback, outcome));
    }

    /// Has the thread look.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
    }

    /// All tasks have their outcomes; the thread ends after the last callback.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.wake();
    }

    /// Waits until all callbacks have run and the thread has ended, at most until the deadline. Does not wait on a thread
    /// that runs callbacks: that would be for itself, or for one that may wait for this one.
    pub(crate) fn wait_for_end(&self, deadline: Option<Instant>) {
        if RUNS_CALLBACKS.get() {
            return;
        }
        let mut state = self.lock();
        while state.runs {
            let Some(deadline) = deadline else {
                state = self.rest.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let registered = state.registered;
                drop(state);
                let pool = self.pool.as_str();
                let _ = contain(|| {
                    warn!(pool, registered, "callbacks take longer than the shutdown may");
                });
                return;
            }
            state = self.rest.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        self.join();
    }

    /// Waits for the exit of a thread that has decided to end.
    fn join(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        // A handle that outlives the pool may have started another one meanwhile.
        let ended = if self.lock().runs { None } else { thread.take() };
        drop(thread);
        if let Some(ended) = ended {
            // A panic there would be ours, and was reported by the panic hook.
            let _ = ended.join();
        }
    }

    fn run(&self) {
        RUNS_CALLBACKS.set(true);
        let origin = Origin::here();
        while let Some(due) = self.next() {
            let count = due.len();
            for (callback, outcome) in due {
                callback.run(outcome, &self.pool);
                if !origin.is_here() {
                    // It has forked, and the others are the other process's.
                    return;
                }
            }
            self.lock().registered -= count;
        }
    }

    /// All that is due; `None` when nothing will be any more.
    fn next(&self) -> Option<Vec<(Callback, RawOutcome)>> {
        let mut state = self.lock();
        while state.due.is_empty() {
            if state.ended && state.registered == 0 {
                state.runs = false;
                self.rest.notify_all();
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(mem::take(&mut state.due))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callback {
    fn run(self, outcome: RawOutcome, pool: &str) {
        let Self { task, label, run } = self;
        if let Err(message) = contain(|| run(outcome)) {
            // A subscriber that panics costs its event only; other callbacks are waiting.
            let _ = contain(
                || error!(pool, %task, label = label.as_deref(), message, "callback panicked"),
            );
        }
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Callback").field("task", &self.task).finish_non_exhaustive()
    }
}
