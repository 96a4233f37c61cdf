//! Puts threads to sleep until an outcome or room in a queue arrives.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::sync::{Thread, ThreadId, current, park, park_timeout};

/// Something that a thread can wait for while it collects outcomes for all callers.
pub trait Wait {
    /// Returns `true` while it has not arrived.
    fn is_pending(&self) -> bool;
    /// Returns `true` if it has arrived and this is known without a lock.
    #[inline]
    fn is_over(&self) -> bool {
        false
    }
    /// Registers the sleeper to wake on arrival. The caller has to check
    /// [`is_pending`](Self::is_pending) again before it sleeps, because the arrival may have come
    /// before the registration.
    fn set_sleeper(&self, sleeper: Sleeper);
    /// Removes the sleeper.
    fn clear_sleeper(&self);
}

/// A sleeping thread and the way to wake it.
#[derive(Debug)]
pub enum Sleeper {
    /// A parked thread.
    Parked(Thread),
    /// A parked thread that is woken in its turn.
    Queued(Arc<dyn Turn>),
    /// A thread that sleeps on a descriptor of its executor, the doorbell.
    AtTheDoorbell,
}

/// The place of a thread among those that are woken one after the other.
pub trait Turn: fmt::Debug + Send + Sync {
    /// Wakes the thread, at once or when it is its turn.
    fn wake(self: Arc<Self>);
    /// Returns `true` if this is the place of `thread`.
    fn is_of(&self, thread: ThreadId) -> bool;
}

impl Sleeper {
    /// Wakes a parked thread. Returns `true` if the sleeper is at the doorbell, which the calling
    /// thread then has to ring.
    #[must_use]
    pub fn wake(self) -> bool {
        match self {
            Self::Parked(thread) => {
                thread.unpark();
                false
            }
            Self::Queued(ticket) => {
                ticket.wake();
                false
            }
            Self::AtTheDoorbell => true,
        }
    }

    /// Returns `true` if the sleeper is this thread, and parked.
    pub fn is_parked(&self, thread: ThreadId) -> bool {
        match self {
            Self::Parked(parked) => parked.id() == thread,
            Self::Queued(ticket) => ticket.is_of(thread),
            Self::AtTheDoorbell => false,
        }
    }
}

/// Parks the current thread until the awaited thing arrives or the deadline passes. Another thread
/// has to bring it about.
pub fn park_for(wait: &dyn Wait, deadline: Option<Instant>) {
    while wait.is_pending() {
        wait.set_sleeper(Sleeper::Parked(current()));
        if wait.is_pending() && !park_until(deadline) {
            return wait.clear_sleeper();
        }
    }
}

/// Parks the current thread, which may wake up spuriously. Returns `false` if the deadline has
/// passed.
fn park_until(deadline: Option<Instant>) -> bool {
    let Some(deadline) = deadline else {
        park();
        return true;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    park_timeout(left);
    true
}
