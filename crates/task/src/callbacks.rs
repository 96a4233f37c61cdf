//! Runs the callbacks of an executor's handles on a thread of their own.
//!
//! A callback is *registered* until it has run. It is *due* as soon as its task's outcome is known:
//! the thread that learns the outcome pushes the callback to the queue under the task's lock, so
//! that the callbacks of one handle keep the order of their registration. The callback thread takes
//! them one after the other and holds no lock while a callback runs.
//!
//! The first registration starts the thread. The thread ends when the executor has *ended* and
//! nothing is registered. Both are decided under the lock of the state, so a registration either
//! finds a thread that will not end before its callback has run, or starts one. This holds even
//! after the executor's end, for a handle that outlives it.
//!
//! Lock order: `thread` before `state`. `state` is taken under the locks of a task and of its
//! executor, and no lock is taken under it.

use std::cell::Cell;
use std::io;
use std::mem;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::fork::Origin;
use brigade_sys::sync::{Condvar, Mutex};
use brigade_wire::TaskId;
use tracing::{error, warn};

use crate::outcome::Outcome;

thread_local! {
    /// `true` on a thread that runs callbacks, of any executor.
    static RUNS_CALLBACKS: Cell<bool> = const { Cell::new(false) };
}

/// The callback queue of an executor. See the module's documentation.
#[derive(Debug)]
pub struct Callbacks<V> {
    /// Name of the executor, for events.
    pool: String,
    /// Nothing that panics runs under this lock.
    state: Mutex<State<V>>,
    /// Notified when callbacks are due.
    work: Condvar,
    /// Notified when the thread ends, for shutdowns that wait.
    thread_ended: Condvar,
    /// Locked while the thread is started.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct State<V> {
    due: Vec<(Callback<V>, Outcome<V>)>,
    registered: usize,
    /// `true` while there is a thread that has not decided to end.
    runs: bool,
    /// `true` once every task of the executor has its outcome.
    ended: bool,
}

/// A registered callback with the task that it belongs to.
pub(crate) struct Callback<V> {
    pub(crate) task: TaskId,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) run: Box<dyn FnOnce(Outcome<V>) + Send>,
}

impl<V> Default for State<V> {
    fn default() -> Self {
        Self { due: Vec::new(), registered: 0, runs: false, ended: false }
    }
}

impl<V: Send + 'static> Callbacks<V> {
    /// Creates the queue of the executor with this name.
    pub fn new(pool: String) -> Arc<Self> {
        Arc::new(Self {
            pool,
            state: Mutex::default(),
            work: Condvar::new(),
            thread_ended: Condvar::new(),
            thread: Mutex::new(None),
        })
    }

    /// Counts a callback that is about to be registered, and starts the thread if it is not
    /// running.
    pub(crate) fn register(self: &Arc<Self>) -> io::Result<()> {
        let mut thread = self.thread.lock();
        let mut state = self.state.lock();
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
                let mut state = self.state.lock();
                state.registered -= 1;
                state.runs = false;
                self.thread_ended.notify_all();
                Err(error)
            }
        }
    }

    /// Undoes `register` for a callback that will not become due.
    pub(crate) fn deregister(&self) {
        self.state.lock().registered -= 1;
        self.wake();
    }

    /// Pushes a registered callback to the queue. The caller has to call [`wake`](Self::wake)
    /// afterwards.
    pub(crate) fn push(&self, callback: Callback<V>, outcome: Outcome<V>) {
        self.state.lock().due.push((callback, outcome));
    }

    /// Wakes the thread to run due callbacks.
    pub(crate) fn wake(&self) {
        self.work.notify_one();
    }

    /// Tells the thread that every task has its outcome: it ends after the last callback.
    pub fn end(&self) {
        self.state.lock().ended = true;
        self.wake();
    }

    /// Waits until all callbacks have run and the thread has ended, or until the deadline. Returns
    /// at once on a thread that runs callbacks, which would wait for itself, or for a thread that
    /// may be waiting for this one.
    pub fn wait_for_end(&self, deadline: Option<Instant>) {
        if RUNS_CALLBACKS.get() {
            return;
        }
        let limit = deadline
            .map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
        let state = self.state.lock();
        let (state, _) = self.thread_ended.wait_timeout_while(state, limit, |state| state.runs);
        let (runs, registered) = (state.runs, state.registered);
        drop(state);
        if runs {
            let pool = self.pool.as_str();
            // A subscriber that panics does not keep the pool from its end.
            let _ = catch_panic(|| {
                warn!(pool, registered, "callbacks still running at the shutdown deadline");
            });
            return;
        }
        self.join();
    }

    /// Joins a thread that has decided to end.
    fn join(&self) {
        let mut thread = self.thread.lock();
        // A handle that outlives the pool may have started another thread in the meantime.
        let ended = if self.state.lock().runs { None } else { thread.take() };
        drop(thread);
        if let Some(ended) = ended {
            // A panic there would be a bug of its own; the panic hook has reported it.
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
                    // The callback has forked; the remaining callbacks belong to the original
                    // process.
                    return;
                }
            }
            self.state.lock().registered -= count;
        }
    }

    /// Waits for due callbacks and takes all of them. Returns `None` when there will be no more.
    fn next(&self) -> Option<Vec<(Callback<V>, Outcome<V>)>> {
        let mut state = self.state.lock();
        while state.due.is_empty() {
            if state.ended && state.registered == 0 {
                state.runs = false;
                self.thread_ended.notify_all();
                return None;
            }
            state = self.work.wait(state);
        }
        Some(mem::take(&mut state.due))
    }
}

impl<V> Callback<V> {
    fn run(self, outcome: Outcome<V>, pool: &str) {
        let Self { task, label, run } = self;
        if let Err(message) = catch_panic(|| run(outcome)) {
            // A subscriber that panics loses only its event; other callbacks are waiting.
            let _ = catch_panic(
                || error!(pool, %task, label = label.as_deref(), message, "callback panicked"),
            );
        }
    }
}

brigade_sys::debug_fields!(impl<V> Callback<V> { task });
