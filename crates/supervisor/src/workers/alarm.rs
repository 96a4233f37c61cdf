//! Wakes a thread of the pool, even one that can no longer wait for descriptors.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::wait::Waker;

/// A descriptor to wait for among others, with parking as a fallback.
#[derive(Debug)]
pub(crate) struct ThreadAlarm {
    waker: Waker,
    /// Set once the thread has found that it cannot wait for descriptors.
    parked: OnceLock<Thread>,
    ended: AtomicBool,
}

impl ThreadAlarm {
    pub(crate) fn new() -> std::io::Result<Self> {
        let waker = Waker::new()?;
        Ok(Self { waker, parked: OnceLock::new(), ended: AtomicBool::new(false) })
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
        if let Some(thread) = self.parked.get() {
            thread.unpark();
        }
    }

    /// Wakes the thread for the last time.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.wake();
    }

    /// Returns `true` after [`end`](Self::end).
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn drain(&self) {
        self.waker.drain();
    }

    /// From now on the current thread is woken by `unpark`. The caller has to check once more for
    /// work before it calls [`sleep`](Self::sleep).
    pub(crate) fn switch_to_parking(&self) {
        self.parked.get_or_init(thread::current);
    }

    /// Returns `true` if [`switch_to_parking`](Self::switch_to_parking) was called.
    pub(crate) fn is_parking(&self) -> bool {
        self.parked.get().is_some()
    }

    /// Sleeps until woken or until the deadline. May wake up spuriously.
    pub(crate) fn sleep(deadline: Option<Monotonic>) {
        match deadline {
            None => thread::park(),
            Some(deadline) => thread::park_timeout(
                deadline.saturating_since(clock::now()).max(Duration::from_nanos(1)),
            ),
        }
    }
}

brigade_sys::as_fd!(ThreadAlarm, waker);
