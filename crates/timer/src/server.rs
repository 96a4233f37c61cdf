//! The timer server: one thread that sleeps until the next deadline, a request, or the end of a worker.

mod builder;
mod connections;
mod contained;
mod event_loop;

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::fork::Origin;
use brigade_sys::wait::Waker;

use crate::client::TimerClient;
use crate::error::ServerError;
pub use builder::TimerServerBuilder;
use event_loop::EventLoop;

/// Kills processes that do not release their timers in time.
///
/// It listens from the moment it is built: clients can have its address, but are answered, and their deadlines served,
/// only while it runs. Dropping it stops it.
///
/// It belongs to the process that built it: in a copy that `fork` has made it does not run, [`start`](Self::start) and
/// [`run_once`](Self::run_once) are errors, and its drop does nothing.
///
/// ```
/// use brigade_timer::TimerServer;
/// use std::time::Duration;
///
/// let mut server = TimerServer::builder().build()?;
/// server.start()?;
/// // For this process; `hand_to` or `to_string` take it to others.
/// let client = server.client();
/// {
///     let _guard = client.expires(Duration::from_secs(60))?;
///     // What takes longer than a minute in here ends this process.
/// }
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TimerServer {
    shared: Arc<Shared>,
    /// Locked by the thread as long as it runs.
    event_loop: Arc<Mutex<EventLoop>>,
    client: TimerClient,
    thread: Option<JoinHandle<()>>,
    /// A fork of the process does not have the thread, and must not touch what the thread uses.
    origin: Origin,
}

/// What the server's thread and its owner both touch.
#[derive(Debug)]
struct Shared {
    /// Wakes the thread to look at `stopping`.
    waker: Waker,
    stopping: AtomicBool,
    /// When the last turn ended, in nanoseconds of the monotonic clock; 0 before the first.
    last_progress: AtomicU64,
}

impl TimerServer {
    /// A server with the default settings unless they are changed.
    pub fn builder() -> TimerServerBuilder {
        TimerServerBuilder::default()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// [`ServerError::AlreadyRunning`]; [`ServerError::Setup`] when there is no thread to be had; [`ServerError::Forked`].
    pub fn start(&mut self) -> Result<(), ServerError> {
        self.check_process()?;
        if self.thread.is_some() {
            return Err(ServerError::AlreadyRunning);
        }
        self.shared.stopping.store(false, Ordering::Release);
        let event_loop = Arc::clone(&self.event_loop);
        let thread = thread::Builder::new()
            .name("brigade-timer".into())
            .spawn(move || lock(&event_loop).run())
            .map_err(ServerError::Setup)?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Stops the thread, and returns when it has ended, after whatever hook, observer or reaper runs on it; called by one of
    /// those, at once. Timers stay: what is overdue at the next start expires then.
    /// Stopping a server that does not run does nothing.
    pub fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            if !self.origin.is_here() {
                // It is the original's, also to be detached.
                mem::forget(thread);
                return;
            }
            self.shared.stopping.store(true, Ordering::Release);
            self.shared.waker.wake();
            // On its own thread, where hooks run, it ends after the hook.
            if thread.thread().id() != thread::current().id() {
                // A panic of the thread would be a bug of ours; it was printed when it happened.
                let _ = thread.join();
            }
        }
    }

    /// Deals, on this thread, with all that is there now, and waits for nothing. For tests, and for owners with a loop.
    ///
    /// # Errors
    /// [`ServerError::AlreadyRunning`] while the thread runs; [`ServerError::Wait`]; [`ServerError::Forked`].
    pub fn run_once(&mut self) -> Result<(), ServerError> {
        self.check_process()?;
        if self.thread.is_some() {
            return Err(ServerError::AlreadyRunning);
        }
        let mut event_loop = match self.event_loop.try_lock() {
            Ok(event_loop) => event_loop,
            Err(TryLockError::Poisoned(event_loop)) => event_loop.into_inner(),
            // A thread that one of its own hooks has stopped.
            Err(TryLockError::WouldBlock) => return Err(ServerError::AlreadyRunning),
        };
        event_loop.turn(false).map_err(ServerError::Wait)
    }

    /// Whether the thread runs.
    pub fn is_running(&self) -> bool {
        self.origin.is_here() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// How long ago the server has last finished a turn; `None` before the first.
    ///
    /// A server without requests and deadlines sleeps, and makes no progress: a long time alone is no sign of trouble.
    pub fn last_progress(&self) -> Option<Duration> {
        match self.shared.last_progress.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(now().saturating_since(Monotonic::from_nanos(nanos))),
        }
    }

    /// A client of this server. It is a name: it works in any process of this host, see [`TimerClient`].
    pub fn client(&self) -> TimerClient {
        self.client.clone()
    }

    fn check_process(&self) -> Result<(), ServerError> {
        if self.origin.is_here() { Ok(()) } else { Err(ServerError::Forked) }
    }
}

/// The loop's state is whole between its steps, each of which contains the panics of code that is not ours.
fn lock(event_loop: &Mutex<EventLoop>) -> MutexGuard<'_, EventLoop> {
    event_loop.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for TimerServer {
    fn drop(&mut self) {
        self.stop();
    }
}
