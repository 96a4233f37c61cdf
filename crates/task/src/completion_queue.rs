//! Queue of the finished tasks among several that callers and futures wait for.
//!
//! Any thread that completes a task adds to it, and wakes all that wait; each of them may take from
//! it.
//!
//! Whoever waits registers, looks again, and only then sleeps. A token is stored before those that
//! are registered are taken. So it is either seen by that look, or wakes them. A waker in the task
//! itself would not do: between the outcome of a task and its token, it would come too late, and
//! the look too early.

use std::collections::VecDeque;
use std::task::Waker;

use crate::sync::{AtomicBool, Mutex, Ordering, ThreadId, current};
use crate::waiting::{Sleeper, Wait};

/// Tokens of finished tasks, in the order of completion. A token is chosen by whoever watches the
/// task.
#[derive(Debug, Default)]
pub struct CompletionQueue {
    /// `true` while the queue holds a token; written under the lock.
    has_some: AtomicBool,
    /// `true` once a future has waited.
    is_polled: AtomicBool,
    /// Nothing that panics runs under this lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tokens: VecDeque<u64>,
    waiting: Waiting,
}

#[derive(Debug, Default)]
struct Waiting {
    /// At most one per thread.
    sleepers: Vec<(ThreadId, Sleeper)>,
    wakers: Vec<Waker>,
}

/// Most wakers that are kept; beyond that, all are woken, and those that are still wanted return.
const MAX_WAKERS: usize = 64;

/// Wake-ups that remain after the waiting threads of a queue were woken.
#[derive(Debug, Default)]
#[must_use = "those that wait would sleep on"]
pub struct Woken {
    /// `true` if a waiting caller sleeps at the pool's doorbell, which the calling thread then has
    /// to ring.
    pub ring_doorbell: bool,
    /// User code, to be called where it may run.
    pub wakers: Vec<Waker>,
}

impl CompletionQueue {
    /// Adds a finished task, and wakes all that wait.
    pub fn add(&self, token: u64) -> Woken {
        let mut state = self.state.lock();
        state.tokens.push_back(token);
        self.has_some.store(true, Ordering::Release);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.wake()
    }

    /// Wakes all that wait, for another reason than a finished task.
    pub fn wake(&self) -> Woken {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        waiting.wake()
    }

    /// Registers a future, which has to check [`is_pending`](Wait::is_pending) afterwards. Returns
    /// wakers to be woken now.
    #[must_use]
    pub fn add_waker(&self, waker: &Waker) -> Vec<Waker> {
        // It is user code, which must not run under the lock.
        let waker = waker.clone();
        self.is_polled.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        let wakers = &mut state.waiting.wakers;
        if wakers.iter().any(|other| other.will_wake(&waker)) {
            drop(state);
            return Vec::new();
        }
        let is_full = wakers.len() >= MAX_WAKERS;
        let surplus = if is_full { std::mem::take(wakers) } else { Vec::new() };
        wakers.push(waker);
        drop(state);
        surplus
    }

    /// Returns `true` if futures may wait.
    pub fn is_polled(&self) -> bool {
        self.is_polled.load(Ordering::Relaxed)
    }

    /// Removes and returns the first token.
    pub fn take(&self) -> Option<u64> {
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
        let sleepers = &mut self.state.lock().waiting.sleepers;
        sleepers.retain(|(other, _)| *other != thread);
        sleepers.push((thread, sleeper));
    }

    fn clear_sleeper(&self) {
        let thread = current().id();
        self.state.lock().waiting.sleepers.retain(|(other, _)| *other != thread);
    }
}

impl Waiting {
    fn wake(self) -> Woken {
        let sleepers = self.sleepers.into_iter();
        let ring_doorbell = sleepers.fold(false, |ring, (_, sleeper)| sleeper.wake() | ring);
        Woken { ring_doorbell, wakers: self.wakers }
    }
}
