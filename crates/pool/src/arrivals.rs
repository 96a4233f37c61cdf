//! Which pieces of a map have ended: filled by whoever completes them, emptied by the caller that iterates.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cell::{Awaited, Sleeper};

/// The names of pieces in the order in which they ended.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    /// Whether there are any; written under the lock.
    some: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    names: VecDeque<u64>,
    sleeper: Option<Sleeper>,
}

impl Arrivals {
    /// True when the one who waits sleeps at the pool's doorbell and is still to be rung.
    #[must_use]
    pub(crate) fn add(&self, name: u64) -> bool {
        let mut state = self.lock();
        state.names.push_back(name);
        self.some.store(true, Ordering::Release);
        let sleeper = state.sleeper.take();
        drop(state);
        sleeper.is_some_and(Sleeper::wake)
    }

    /// The first one.
    pub(crate) fn take(&self) -> Option<u64> {
        if self.is_awaited() {
            return None;
        }
        let mut state = self.lock();
        let name = state.names.pop_front();
        self.some.store(!state.names.is_empty(), Ordering::Release);
        name
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that panics runs under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited for Arrivals {
    #[inline]
    fn is_awaited(&self) -> bool {
        !self.some.load(Ordering::Acquire)
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        self.lock().sleeper = Some(sleeper);
    }

    fn wake_up(&self) {
        self.lock().sleeper = None;
    }
}
