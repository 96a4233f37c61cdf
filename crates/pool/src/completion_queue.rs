//! Queue of the finished tasks among several that one caller waits for.
//!
//! Any thread that completes a task adds to it; only the waiting caller takes from it.

use std::collections::VecDeque;

use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::waiting::{Sleeper, Wait};

/// Tokens of finished tasks, in the order of completion. A token is chosen by whoever watches the
/// task.
#[derive(Debug, Default)]
pub(crate) struct CompletionQueue {
    /// `true` while the queue holds a token; written under the lock.
    has_some: AtomicBool,
    /// Nothing that panics runs under this lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tokens: VecDeque<u64>,
    sleeper: Option<Sleeper>,
}

impl CompletionQueue {
    /// Adds a finished task. Returns `true` if the waiting caller sleeps at the pool's doorbell,
    /// which the calling thread then has to ring.
    #[must_use]
    pub(crate) fn add(&self, token: u64) -> bool {
        let mut state = self.state.lock();
        state.tokens.push_back(token);
        self.has_some.store(true, Ordering::Release);
        let sleeper = state.sleeper.take();
        drop(state);
        sleeper.is_some_and(Sleeper::wake)
    }

    /// Removes and returns the first token.
    pub(crate) fn take(&self) -> Option<u64> {
        if self.is_pending() {
            return None;
        }
        let mut state = self.state.lock();
        let token = state.tokens.pop_front();
        self.has_some.store(!state.tokens.is_empty(), Ordering::Release);
        token
    }
}

impl Wait for CompletionQueue {
    #[inline]
    fn is_pending(&self) -> bool {
        !self.has_some.load(Ordering::Acquire)
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        self.state.lock().sleeper = Some(sleeper);
    }

    fn clear_sleeper(&self) {
        self.state.lock().sleeper = None;
    }
}
