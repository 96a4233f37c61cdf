//! Which of several tasks have ended: filled by whoever completes them, emptied by the one caller that waits for them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::awaited::{Awaited, Sleeper, park_for};
use crate::drive::Shared;

/// The names of tasks in the order in which they ended.
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

    /// Waits for the first one and takes it; `None` when the deadline has passed.
    ///
    /// `pool` is the one whose tasks they are. Several pools drive their tasks without this thread.
    pub(crate) fn next(
        &self,
        pool: Option<&Arc<Shared>>,
        deadline: Option<Instant>,
    ) -> Option<u64> {
        if let Some(name) = self.take() {
            return Some(name);
        }
        match pool {
            // Without time to wait there still is what has come.
            Some(pool) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                pool.collect();
            }
            Some(pool) => pool.wait_for(self, deadline),
            None => park_for(self, deadline),
        }
        self.take()
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
