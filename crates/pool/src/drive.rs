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
//! - The *console* carries what workers write to where it belongs, and keeps the last lines of each one's stderr.
//! - The *callbacks* of users have a thread of their own, which drives nothing; see `crate::callbacks`.
//!
//! Locks: the core's lock guards machine, outbox and posts. It is never held while a process is started or
//! reaped, an outcome is handed to a waiter, or anything is waited for. Frames are written under it, which
//! keeps the order of sending the machine's order; links never block on the host's side.

mod attendant;
mod bootstrap;
mod carry_out;
mod collect;
mod console;
mod death;
mod lifecycle;
mod outcome;
mod owner;
mod post;
mod reaper;
mod shared;
mod spawner;
mod submit;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use brigade_sys::memory::require_address_space;

use crate::config::Config;
use crate::error::PoolError;
use crate::machine::{Event, Shutdown};
use crate::pool::ShutdownReport;
use outcome::Facts;
pub(crate) use shared::Shared;

/// A thread of the pool is started, and a worker's memory is mapped, while so much address space is left: for a stack, and
/// for the program, which would abort if an allocation failed.
const SPACE_LEFT: u64 = 10 << 20;

/// The running pool: what is shared, and the threads to join at the end.
pub(crate) struct Drive {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drive {
    pub(crate) fn start(config: Config) -> Result<Self, PoolError> {
        let (shared, spawn_orders) = Shared::new(config)?;
        let drive = Self { shared, threads: Mutex::new(Vec::new()) };
        let result = drive
            .run("console", |shared| console::run(&shared.console))
            .and_then(|()| drive.run("collector", |shared| collect::run(&shared)))
            .and_then(|()| drive.run("reaper", |shared| reaper::run(&shared)))
            .and_then(|()| {
                drive.run("spawner", move |shared| spawner::run(&shared, &spawn_orders))
            });
        if let Err(error) = result {
            // Without all its threads the pool cannot end by itself; nothing has been started yet.
            drive.shared.release_threads();
            drive.join();
            return Err(error);
        }
        if drive.shared.config.min_workers > 0 {
            drive.shared.step(Event::Tick, Facts::Nothing);
        }
        Ok(drive)
    }

    fn run(
        &self,
        role: &str,
        body: impl FnOnce(Arc<Shared>) + Send + 'static,
    ) -> Result<(), PoolError> {
        let shared = Arc::clone(&self.shared);
        let thread = require_address_space(SPACE_LEFT)
            .and_then(|()| {
                std::thread::Builder::new().name(format!("brigade-{role}")).spawn(move || {
                    shared.own_this_thread();
                    body(shared);
                })
            })
            .map_err(PoolError::system("start a thread of the pool"))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
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
        self.join();
        // Callbacks have what is left of the timeout, and a grace in any case.
        let deadline = timeout.and_then(|timeout| {
            let left = timeout.saturating_sub(begin.elapsed());
            Instant::now().checked_add(left.max(self.shared.config.stop_grace))
        });
        self.shared.callbacks.wait_for_end(deadline);
        report
    }

    fn join(&self) {
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic there was reported by the panic hook; the pool's state is whole without it.
            let _ = thread.join();
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
        }
    }
}
