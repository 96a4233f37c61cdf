//! Queue of the finished tasks among several that callers wait for.
//!
//! Any thread that completes a task adds to it, and wakes all callers that wait; each of them may
//! take from it.

use std::collections::VecDeque;

use crate::sync::{AtomicBool, Mutex, Ordering, ThreadId, current};
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
    /// At most one per thread.
    sleepers: Vec<(ThreadId, Sleeper)>,
}

impl CompletionQueue {
    /// Adds a finished task. Returns `true` if a waiting caller sleeps at the pool's doorbell,
    /// which the calling thread then has to ring.
    #[must_use]
    pub(crate) fn add(&self, token: u64) -> bool {
        let mut state = self.state.lock();
        state.tokens.push_back(token);
        self.has_some.store(true, Ordering::Release);
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        wake_all(sleepers)
    }

    /// Wakes all waiting callers, for another reason than a finished task. Returns the same as
    /// `add`.
    #[must_use]
    pub(crate) fn wake(&self) -> bool {
        let sleepers = std::mem::take(&mut self.state.lock().sleepers);
        wake_all(sleepers)
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

    #[inline]
    fn is_over(&self) -> bool {
        !self.is_pending()
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        let thread = current().id();
        let mut state = self.state.lock();
        state.sleepers.retain(|(other, _)| *other != thread);
        state.sleepers.push((thread, sleeper));
    }

    fn clear_sleeper(&self) {
        let thread = current().id();
        self.state.lock().sleepers.retain(|(other, _)| *other != thread);
    }
}

fn wake_all(sleepers: Vec<(ThreadId, Sleeper)>) -> bool {
    sleepers.into_iter().fold(false, |ring_doorbell, (_, sleeper)| sleeper.wake() | ring_doorbell)
}
