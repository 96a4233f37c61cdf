//! The threads that carry out the scheduler's decisions. They decide nothing themselves.
//!
//! Spawner, attendants, reaper, cleaner and output thread belong to `brigade-supervisor`, which
//! knows nothing of tasks; `supervised` handles what they report.
//!
//! Threads:
//! - A *submitting thread* locks the core, passes its event to the scheduler and writes the frame
//!   itself.
//! - The *spawner* starts every process. It lives as long as the pool, because a worker's
//!   parent-death signal fires when the thread that started it exits.
//! - Each worker has an *attendant*, unless it was forked and no answer is awaited: then the
//!   spawner greets it. The attendant does the handshake; over an ipc link it then reads the link,
//!   passes on what it reads, and finally reports the worker's death.
//! - The *reaper* waits for deaths (pidfds) and for the scheduler's next deadline. It reaps dead
//!   workers, and reports a death once everything that the worker had written has been read.
//! - The *cleaner* does slow work: it frees large memory and searches for processes that a worker
//!   has started before it kills the worker.
//! - The *collector* reads the workers' rings while no caller does, and runs user code that has no
//!   other thread to run on.
//! - The *output* thread forwards the workers' output, keeps the last lines of each worker's
//!   stderr, and emits events.
//! - With a timeline, a thread named *trace* writes it to a file; see `brigade_trace::timeline`.
//! - The *callbacks* of users have a thread of their own, which drives nothing; see
//!   `brigade_task::backend::Callbacks`.
//!
//! Rules:
//! - Reaper, attendants, spawner and cleaner run no user code, write no output, and wait for
//!   nothing but their own events. They hand events to the output thread, wakers and hooks to the
//!   collector (`user_code`), and large memory to the cleaner.
//! - Only the output thread calls subscribers and writes to the host's stderr, but for the spans of
//!   tasks, which their callers open.
//! - The collector and the callers run wakers after their own work; a caller that listens first
//!   hands over to another thread (`collect`).
//! - The output thread and the collector may be blocked forever: every wait for them is bounded,
//!   and the end of the pool leaves them behind.
//! - Effects of an event other than the scheduler's actions are gathered under the lock and carried
//!   out after it is released (`deferred`).
//! - A panic of a thread's turn is caught. A thread that cannot continue breaks the pool and ends
//!   its workers (`Shared::give_up`).
//!
//! Locks: the core's lock guards the scheduler, the outbox and the worker slots. It is never held
//! while a process is started or reaped, a waiter is notified, user code runs, large memory is
//! freed, or the thread waits for anything. Frames are written under it, so they are sent in the
//! scheduler's order; links never block the host. A journal is written under it too, so a slow disk
//! slows down the pool.

mod collect;
mod deaths;
mod deferred;
mod handle_event;
mod large;
mod observer;
mod outcome;
mod owner;
mod send;
mod shared;
mod starts;
mod user_code;
mod watch;

use std::convert::Infallible;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brigade_scheduler::{Event, Shutdown, ShutdownReport};
use brigade_supervisor::threads::{cleaner, output, reaper, spawner};
use brigade_supervisor::{note, require_reserve};
use brigade_sys::sync::Mutex;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use crate::cell::Attributes;
use crate::config::Config;
use crate::error::PoolError;
pub(crate) use collect::glances::Glance;
use observer::Observer;
use outcome::EventData;
pub(crate) use outcome::panicked;
use owner::Role;
pub(crate) use send::room::Place;
pub(crate) use shared::Shared;
use shared::Work;

/// A running pool: the shared state, and the threads to join at the end.
pub(crate) struct Drive {
    pub(crate) shared: Arc<Shared>,
    /// The attributes of tasks that have nothing rare.
    pub(crate) ordinary: Arc<Attributes>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Threads that call user code, which may block them forever.
    user_code_threads: Mutex<Vec<UserCodeThread>>,
}

/// A thread that is joined only once it has ended.
struct UserCodeThread {
    thread: JoinHandle<()>,
    /// Disconnected when the thread ends.
    end: Receiver<Infallible>,
}

impl Drive {
    pub(crate) fn start(config: Config) -> Result<Self, PoolError> {
        let (shared, work) = Shared::new(config)?;
        let ordinary = Attributes::ordinary(Arc::clone(&shared) as _);
        let (threads, user_code_threads) = (Mutex::default(), Mutex::default());
        let drive = Self { shared, ordinary, threads, user_code_threads };
        if let Err(error) = drive.start_threads(work) {
            // The pool cannot end by itself without all its threads. Nothing has been started yet.
            drive.shared.release_threads();
            drive.join(drive.shared.config.scheduler.stop_grace);
            return Err(error);
        }
        #[cfg(feature = "recording")]
        drive.shared.register();
        let (left_out, output) = (&drive.shared.config.left_out, &drive.shared.supervisor.output);
        if !left_out.is_empty() {
            let settings = left_out.join(", ");
            note!(output, WARN, settings, "workers are threads, so these settings do not hold");
        }
        let settings = &drive.shared.config.scheduler;
        if settings.min_workers.max(settings.spare_workers) > 0 {
            drive.shared.step(Event::Tick, EventData::Nothing);
        }
        Ok(drive)
    }

    fn start_threads(&self, (spawn_orders, jobs): Work) -> Result<(), PoolError> {
        // The spawner needs it. A thread that creates it while another one forks leaves the copy
        // with a lock that is never released, at which its `main` ends.
        let _ = std::io::stdout();
        self.run_user_code_thread("output", Role::Other, output::run)?;
        self.run_user_code_thread("collector", Role::Collector, collect::run)?;
        self.start_observers()?;
        let driver = Role::Driver;
        let mut threads = self.threads.lock();
        threads.push(self.run("reaper", driver, |shared| reaper::run(&*shared))?);
        threads.push(self.run("cleaner", driver, move |shared| cleaner::run(&*shared, &jobs))?);
        let spawner = move |shared: Arc<Shared>| spawner::run(&shared, &spawn_orders);
        threads.push(self.run("spawner", driver, spawner)?);
        Ok(())
    }

    fn run(
        &self,
        name: &str,
        role: Role,
        body: impl FnOnce(Arc<Shared>) + Send + 'static,
    ) -> Result<JoinHandle<()>, PoolError> {
        let shared = Arc::clone(&self.shared);
        let name = format!("brigade-{name}");
        require_reserve()
            .and_then(|()| {
                std::thread::Builder::new().name(name).spawn(move || {
                    shared.own_this_thread();
                    owner::take_role(role);
                    body(shared);
                })
            })
            .map_err(PoolError::system("start a thread of the pool"))
    }

    /// Starts the thread of an observer that needs one.
    fn start_observers(&self) -> Result<(), PoolError> {
        let Some((name, run)) = self.shared.lock().observers.thread() else { return Ok(()) };
        self.run_user_code_thread(name, Role::Other, |shared| {
            if let Err(error) = run(&shared.config.supervisor.pool) {
                let output = &shared.supervisor.output;
                note!(output, WARN, %error, "cannot write the timeline; it ends here");
            }
        })
    }

    /// Starts a thread that calls user code.
    fn run_user_code_thread(
        &self,
        name: &str,
        role: Role,
        body: impl FnOnce(&Shared) + Send + 'static,
    ) -> Result<(), PoolError> {
        let (alive, end) = bounded(0);
        let thread = self.run(name, role, move |shared| {
            let _alive: Sender<Infallible> = alive;
            body(&shared);
        })?;
        self.user_code_threads.lock().push(UserCodeThread { thread, end });
        Ok(())
    }

    /// Begins to end the pool, unless it is a copy in a fork.
    pub(crate) fn begin_shutdown(&self, mode: Shutdown) {
        if !self.shared.is_forked() {
            self.shared.begin_shutdown(mode, None);
        }
    }

    /// Ends the pool and its threads; see [`Shutdown`].
    pub(crate) fn shutdown(
        &self,
        mode: Shutdown,
        timeout: Option<Duration>,
    ) -> Result<ShutdownReport, PoolError> {
        if self.shared.is_forked() {
            return Err(PoolError::Forked);
        }
        if self.shared.is_own_thread() {
            // A waker of one of this pool's tasks runs here. Waiting for the end would be waiting
            // for this very thread, so the pool ends on its own.
            return Ok(self.shared.begin_shutdown(mode, timeout));
        }
        let begin = Instant::now();
        let report = self.shared.shutdown(mode, timeout);
        // User code has the rest of the timeout, and at least the stop grace.
        let grace = |timeout: Duration| {
            timeout.saturating_sub(begin.elapsed()).max(self.shared.config.scheduler.stop_grace)
        };
        self.join(grace(timeout.unwrap_or_default()));
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(grace(timeout)));
        self.shared.callbacks.wait_for_end(deadline);
        report
    }

    /// Returns the number of tasks that cannot end before this thread goes on, because it drives
    /// the pool.
    pub(crate) fn left_to_this_thread(&self) -> Option<u64> {
        let pending = || self.shared.lock().scheduler.pending();
        self.shared.is_own_thread().then(pending).filter(|tasks| *tasks > 0)
    }

    /// Waits for the pool's threads to end. Threads that user code blocks for longer than `grace`
    /// are left behind.
    fn join(&self, grace: Duration) {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // The panic hook has reported a panic there; the pool's state is consistent without the
            // thread.
            let _ = thread.join();
        }
        self.shared.supervisor.clean_up();
        // Other threads that end the pool wait for the same threads, each as long as it wants.
        let ends: Vec<_> =
            self.user_code_threads.lock().iter().map(|caller| caller.end.clone()).collect();
        let begin = Instant::now();
        for end in ends {
            let _ = end.recv_timeout(grace.saturating_sub(begin.elapsed()));
        }
        let user_code_threads = std::mem::take(&mut *self.user_code_threads.lock());
        for UserCodeThread { thread, end } in user_code_threads {
            if end.try_recv() == Err(TryRecvError::Disconnected) {
                let _ = thread.join();
            }
        }
    }
}

/// Does nothing in a fork of the process: the threads do not exist there, and the state is shared.
impl Drop for Drive {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            std::mem::forget(Arc::clone(&self.shared));
            std::mem::forget(std::mem::take(self.threads.get_mut()));
            std::mem::forget(std::mem::take(self.user_code_threads.get_mut()));
        }
    }
}
