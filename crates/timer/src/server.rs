//! The timer server: one thread that sleeps until a deadline, a request, or the end of a client
//! process.

mod builder;
mod connections;
mod event_loop;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::fork::Origin;
use brigade_sys::sync::Mutex;
use brigade_sys::wait::Waker;

use crate::client::TimerClient;
use crate::error::ServerError;
pub use builder::TimerServerBuilder;
use event_loop::EventLoop;

/// Kills processes that do not release their timers in time.
///
/// It listens from the moment it is built. Clients may use its address from then on, but it answers
/// them and serves their deadlines only while it runs. Dropping it stops it.
///
/// It belongs to the process that built it. In a forked copy it does not run,
/// [`start`](Self::start) and [`run_once`](Self::run_once) return errors, and dropping it does
/// nothing.
///
/// ```
/// use brigade_timer::TimerServer;
/// use std::time::Duration;
///
/// let mut server = TimerServer::builder().build()?;
/// server.start()?;
/// // For this process; pass it to others with `hand_to` or `to_string`.
/// let client = server.client();
/// {
///     let _guard = client.expires(Duration::from_secs(60))?;
///     // If this takes longer than a minute, the process is killed.
/// }
/// server.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TimerServer {
    shared: Arc<Shared>,
    /// Locked by the thread while it runs. The state is consistent between steps, and each step
    /// contains the panics of user code.
    event_loop: Arc<Mutex<EventLoop>>,
    client: TimerClient,
    thread: Option<JoinHandle<()>>,
    /// A forked copy of the process does not have the thread and must not touch the thread's state.
    origin: Origin,
}

/// State shared by the server's thread and its owner.
#[derive(Debug)]
struct Shared {
    /// Wakes the thread so that it reads `stopping`.
    waker: Waker,
    stopping: AtomicBool,
    /// The end of the last turn, in nanoseconds on the monotonic clock; 0 before the first.
    last_progress: AtomicU64,
}

impl TimerServer {
    /// Returns a builder with the default settings.
    pub fn builder() -> TimerServerBuilder {
        TimerServerBuilder::default()
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// [`ServerError::AlreadyRunning`]; [`ServerError::Setup`] if no thread can be started;
    /// [`ServerError::Forked`].
    pub fn start(&mut self) -> Result<(), ServerError> {
        self.check_process()?;
        if self.thread.is_some() {
            return Err(ServerError::AlreadyRunning);
        }
        self.shared.stopping.store(false, Ordering::Release);
        let event_loop = Arc::clone(&self.event_loop);
        let thread = thread::Builder::new()
            .name("brigade-timer".into())
            .spawn(move || event_loop.lock().run())
            .map_err(ServerError::Setup)?;
        self.thread = Some(thread);
        Ok(())
    }

    /// Stops the thread and waits until it has ended, including a hook, observer or reaper that is
    /// running on it. Called by one of those, it returns at once. Timers stay armed: overdue ones
    /// expire at the next start.
    ///
    /// Does nothing if the server does not run.
    pub fn stop(&mut self) {
        if let Some(thread) = self.thread.take() {
            if !self.origin.is_here() {
                // The thread belongs to the original, so it must not even be detached here.
                mem::forget(thread);
                return;
            }
            self.shared.stopping.store(true, Ordering::Release);
            self.shared.waker.wake();
            // A hook may call this on the server's own thread, which ends after the hook.
            if thread.thread().id() != thread::current().id() {
                // A panic of the thread is a bug of this crate, and was printed when it happened.
                let _ = thread.join();
            }
        }
    }

    /// Runs one turn on this thread: serves everything that is ready and does not wait. Meant for
    /// tests, and for owners with an event loop of their own.
    ///
    /// # Errors
    /// [`ServerError::AlreadyRunning`] while the thread runs; [`ServerError::Wait`];
    /// [`ServerError::Forked`].
    pub fn run_once(&mut self) -> Result<(), ServerError> {
        self.check_process()?;
        if self.thread.is_some() {
            return Err(ServerError::AlreadyRunning);
        }
        let Some(mut event_loop) = self.event_loop.try_lock() else {
            // One of its own hooks has stopped the thread, which still runs.
            return Err(ServerError::AlreadyRunning);
        };
        event_loop.turn(false).map_err(ServerError::Wait)
    }

    /// Returns `true` if the thread is running.
    pub fn is_running(&self) -> bool {
        self.origin.is_here() && self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Returns the time since the last turn; `None` before the first.
    ///
    /// A server without requests and deadlines sleeps and makes no progress, so a long time alone
    /// is no sign of trouble.
    pub fn last_progress(&self) -> Option<Duration> {
        match self.shared.last_progress.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(now().saturating_since(Monotonic::from_nanos(nanos))),
        }
    }

    /// Returns a client of this server, which works in any process of this host; see
    /// [`TimerClient`].
    pub fn client(&self) -> TimerClient {
        self.client.clone()
    }

    fn check_process(&self) -> Result<(), ServerError> {
        if self.origin.is_here() { Ok(()) } else { Err(ServerError::Forked) }
    }
}

impl Drop for TimerServer {
    fn drop(&mut self) {
        self.stop();
    }
}
