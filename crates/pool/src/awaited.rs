//! How a thread waits for what other threads bring about.

use std::thread::{self, Thread};
use std::time::Instant;

/// What a thread may wait for while it collects answers for everybody.
pub(crate) trait Awaited {
    /// Whether it is still to come.
    fn is_awaited(&self) -> bool;
    /// Says who is to be woken when it comes. Look once more before sleeping: it may have come before.
    fn set_sleeper(&self, sleeper: Sleeper);
    /// Nobody sleeps any more.
    fn wake_up(&self);
}

/// How a thread sleeps that waits for an outcome.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// Parked.
    Parked(Thread),
    /// On the caller's descriptor of the pool's doorbell.
    AtTheDoorbell,
}

impl Sleeper {
    /// True when the sleeper is at the pool's doorbell and is still to be rung.
    #[must_use]
    pub(crate) fn wake(self) -> bool {
        match self {
            Self::Parked(thread) => {
                thread.unpark();
                false
            }
            Self::AtTheDoorbell => true,
        }
    }
}

/// Parks this thread until what it waits for is there; somebody else has to bring it about.
pub(crate) fn park_for(awaited: &impl Awaited, deadline: Option<Instant>) {
    while awaited.is_awaited() {
        awaited.set_sleeper(Sleeper::Parked(thread::current()));
        if awaited.is_awaited() && !park_until(deadline) {
            return awaited.wake_up();
        }
    }
}

/// Parks this thread, which may end for no reason; false when the deadline has passed.
pub(crate) fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        thread::park();
        return true;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    thread::park_timeout(left);
    true
}
