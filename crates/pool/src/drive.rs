//! The threads around the machine: they do what it decides and decide nothing.
//!
//! Who runs what:
//! - A *submitting thread* locks the core, hands the machine its event and writes the frame itself.
//! - The *spawner* starts every process. It lives as long as the pool, because a worker's parent-death
//!   signal fires when the thread that started it exits.
//! - Each worker has an *attendant*: it does the handshake, then reads that worker's link, and tells the
//!   machine what it reads, and at the end that the worker is dead.
//! - The *reaper* waits for deaths (pidfds) and for the machine's next deadline; it reaps, and then has the
//!   attendant read to the end of what the dead worker had written.
//! - The *cleaner* does what takes a while: it frees large memory, and looks for what a worker has started before it kills it.
//! - The *console* carries what workers write to where it belongs, keeps the last lines of each one's stderr, and emits events.
//! - The *callbacks* of users have a thread of their own, which drives nothing; see `crate::callbacks`.
//!
//! Which thread may do what:
//! - Reaper, attendants, spawner and cleaner run no code of users, write nothing, and wait for nothing but what is theirs.
//!   They hand events to the console (`notes`), wakers and hooks to the collector (`foreign`), large memory to the cleaner.
//! - The console alone calls subscribers and writes to our stderr.
//! - The collector and callers run wakers when their part is done; a caller that listens hands over before (`collect`).
//! - Console and collector may be blocked for ever: nobody waits for them without a bound, and the end of the pool leaves them
//!   behind.
//! - What follows from an event and is not the machine's is gathered under the lock and done after it (`afterwards`).
//! - A turn that panics is contained. A thread that cannot go on breaks the pool and ends its workers (`failure`).
//!
//! Locks: the core's lock guards machine, outbox and posts. It is never held while a process is started or
//! reaped, an outcome is handed to a waiter, code of users runs, large memory is freed, or anything is waited for. Frames are
//! written under it, which keeps the order of sending the machine's order; links never block on the host's side. The journal,
//! if there is one, is written under it as well: a disk that is slow makes the pool as slow.

mod afterwards;
mod alarm;
mod attendant;
mod bootstrap;
mod carry_out;
mod cleaner;
mod collect;
mod console;
mod death;
mod failure;
mod folders;
mod foreign;
mod lifecycle;
mod notes;
mod outcome;
mod owner;
mod post;
mod reaper;
mod shared;
mod spawner;
mod submit;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brigade_sys::memory::require_address_space;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};

use crate::config::Config;
use crate::error::PoolError;
use crate::machine::{Event, Shutdown};
use crate::pool::ShutdownReport;
use brigade_sys::poller::Poller;
use outcome::Facts;
use owner::Role;
pub(crate) use shared::Shared;
use shared::Work;

/// A thread of the pool is started, and a worker's memory is mapped, while so much address space is left: for a stack, and
/// for the program, which would abort if an allocation failed.
const SPACE_LEFT: u64 = 10 << 20;

/// The running pool: what is shared, and the threads to join at the end.
pub(crate) struct Drive {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Those that call code of users, which may block them for ever.
    callers: Mutex<Vec<Caller>>,
}

/// A thread that is not joined before it has ended.
struct Caller {
    thread: JoinHandle<()>,
    /// Disconnected at the thread's end.
    end: Receiver<Infallible>,
}

impl Drive {
    pub(crate) fn start(config: Config) -> Result<Self, PoolError> {
        let (shared, work) = Shared::new(config)?;
        let drive = Self { shared, threads: Mutex::default(), callers: Mutex::default() };
        if let Err(error) = drive.start_threads(work) {
            // Without all its threads the pool cannot end by itself; nothing has been started yet.
            drive.shared.release_threads();
            drive.join(drive.shared.config.stop_grace);
            return Err(error);
        }
        if drive.shared.config.min_workers > 0 {
            drive.shared.step(Event::Tick, Facts::Nothing);
        }
        Ok(drive)
    }

    fn start_threads(&self, (spawn_orders, jobs): Work) -> Result<(), PoolError> {
        let poller = || Poller::new().map_err(PoolError::system("make an epoll descriptor"));
        let (pipes, workers) = (poller()?, poller()?);
        self.run_caller("console", Role::Other, move |shared| console::run(shared, pipes))?;
        self.run_caller("collector", Role::Collector, collect::run)?;
        let threads = [
            self.run("reaper", Role::Driver, |shared| reaper::run(&shared, workers)),
            self.run("cleaner", Role::Driver, move |shared| cleaner::run(&shared, &jobs)),
            self.run("spawner", Role::Driver, move |shared| spawner::run(&shared, &spawn_orders)),
        ];
        let mut started = Ok(());
        for thread in threads {
            match thread {
                Ok(thread) => {
                    self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
                }
                Err(error) => started = Err(error),
            }
        }
        started
    }

    fn run(
        &self,
        name: &str,
        role: Role,
        body: impl FnOnce(Arc<Shared>) + Send + 'static,
    ) -> Result<JoinHandle<()>, PoolError> {
        let shared = Arc::clone(&self.shared);
        let name = format!("brigade-{name}");
        require_address_space(SPACE_LEFT)
            .and_then(|()| {
                std::thread::Builder::new().name(name).spawn(move || {
                    shared.own_this_thread();
                    owner::take_role(role);
                    body(shared);
                })
            })
            .map_err(PoolError::system("start a thread of the pool"))
    }

    /// Runs a thread that calls code of users.
    fn run_caller(
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
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.push(Caller { thread, end });
        Ok(())
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
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
            // A waker of this pool's task runs here. To wait would be to wait for this very thread; the pool ends
            // on its own.
            return Ok(self.shared.begin_shutdown(mode, timeout));
        }
        let begin = Instant::now();
        let report = self.shared.shutdown(mode, timeout);
        // Code of others has what is left of the timeout, and a grace in any case.
        let grace = |timeout: Duration| {
            timeout.saturating_sub(begin.elapsed()).max(self.shared.config.stop_grace)
        };
        self.join(grace(timeout.unwrap_or_default()));
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(grace(timeout)));
        self.shared.callbacks.wait_for_end(deadline);
        report
    }

    /// Waits for the end of the pool's threads. Those that are blocked by code of users for longer than that are left behind.
    fn join(&self, grace: Duration) {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic there was reported by the panic hook; the pool's state is whole without it.
            let _ = thread.join();
        }
        self.shared.folders.remove_all();
        let callers = || self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        // Others that end the pool wait for the same, each as long as it likes.
        let ends: Vec<_> = callers().iter().map(|caller| caller.end.clone()).collect();
        let deadline = Instant::now().checked_add(grace);
        for end in ends {
            let _ = match deadline {
                Some(deadline) => end.recv_deadline(deadline).ok(),
                None => end.recv().ok(),
            };
        }
        let callers = std::mem::take(&mut *callers());
        for Caller { thread, end } in callers {
            if end.try_recv() == Err(TryRecvError::Disconnected) {
                let _ = thread.join();
            }
        }
    }
}

/// In a fork of the process nothing is ended: neither the threads, which are not there, nor what they share.
impl Drop for Drive {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            std::mem::forget(Arc::clone(&self.shared));
            let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(threads));
            let callers = self.callers.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::take(callers));
        }
    }
}
