//! Stopping a run from outside: from a handler of Ctrl-C, another thread, or the run's own events.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use brigade_sys::fork::Origin;
use brigade_sys::wait::Waker;

use crate::error::RunnerError;

/// Stops a run. Clone it to wherever it is needed. In a copy of the process that `fork` has made it does nothing.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    asked: AtomicU8,
    waker: Waker,
    origin: Origin,
}

/// How often a run was asked to stop at most: more changes nothing.
const AT_ONCE: u8 = 2;

impl Stopper {
    pub(crate) fn new() -> io::Result<Self> {
        let (asked, waker) = (AtomicU8::new(0), Waker::new()?);
        Ok(Self(Arc::new(Shared { asked, waker, origin: Origin::here() })))
    }

    /// Asks the run to stop: jobs are interrupted, then ended. Asked twice, they are killed at once.
    pub fn stop(&self) {
        let _ = self.0.asked.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |asked| {
            Some(asked.saturating_add(1).min(AT_ONCE))
        });
        self.wake();
    }

    /// Kills all jobs at once.
    pub fn kill(&self) {
        self.0.asked.store(AT_ONCE, Ordering::SeqCst);
        self.wake();
    }

    /// A [`Source`](crate::Source) that answered [`Later`](crate::Supply::Later) has a job now.
    pub fn wake(&self) {
        // A copy shares the waker.
        if self.0.origin.is_here() {
            self.0.waker.wake();
        }
    }

    /// Errors in a copy of the process in which the runner was built.
    pub(crate) fn check_process(&self) -> Result<(), RunnerError> {
        if self.0.origin.is_here() { Ok(()) } else { Err(RunnerError::Forked) }
    }

    pub(crate) fn asked(&self) -> u8 {
        self.0.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.0.waker
    }
}
