//! Stops a run from outside: from a Ctrl-C handler, another thread, or the run's own events.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use brigade_sys::fork::Origin;
use brigade_sys::wait::Waker;

use crate::error::RunnerError;

/// Stops a run. Clones share the same run. In a copy of the process made by `fork` it does nothing.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    requests: AtomicU8,
    /// `true` if a pause was requested and has not begun.
    suspends: AtomicBool,
    waker: Waker,
    origin: Origin,
}

/// The number of requests that means "kill at once"; further requests change nothing.
const KILL: u8 = 2;

impl Stopper {
    pub(crate) fn new() -> io::Result<Self> {
        let (requests, suspends, waker) = (AtomicU8::new(0), AtomicBool::new(false), Waker::new()?);
        Ok(Self(Arc::new(Shared { requests, suspends, waker, origin: Origin::here() })))
    }

    /// Asks the run to stop: interrupts its jobs, and later ends them. A second call kills them
    /// immediately.
    pub fn stop(&self) {
        let _ = self.0.requests.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |requests| {
            Some(requests.saturating_add(1).min(KILL))
        });
        self.wake();
    }

    /// Kills all jobs immediately.
    pub fn kill(&self) {
        self.0.requests.store(KILL, Ordering::SeqCst);
        self.wake();
    }

    /// Stops all running jobs by SIGSTOP and emits [`Event::Suspended`](crate::Event::Suspended).
    /// They continue when the handler of that event returns; no time limit passes meanwhile.
    pub fn suspend(&self) {
        self.0.suspends.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Tells the runner that a [`Client`](crate::Client) that returned
    /// [`Later`](crate::Supply::Later) now has a job.
    pub fn wake(&self) {
        // A fork of this process shares the waker.
        if self.0.origin.is_here() {
            self.0.waker.wake();
        }
    }

    /// Returns an error in a fork of the process that built the runner.
    pub(crate) fn check_process(&self) -> Result<(), RunnerError> {
        if self.0.origin.is_here() { Ok(()) } else { Err(RunnerError::Forked) }
    }

    pub(crate) fn take_suspension(&self) -> bool {
        self.0.suspends.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> u8 {
        self.0.requests.load(Ordering::SeqCst)
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.0.waker
    }
}
