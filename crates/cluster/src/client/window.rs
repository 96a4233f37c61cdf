//! The window of publications whose answer is outstanding: submissions wait while it is full.

use std::task::{Context, Poll, Waker};

use brigade_sys::sync::{Condvar, Mutex};
use brigade_task::SubmitErrorKind;

use super::failure::closed;
use crate::clock::{Monotonic, now};

/// A number of places, which submissions take and the driver gives back.
pub(super) struct SubmissionWindow {
    /// Nothing that panics runs under this lock.
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: usize,
    wakers: Vec<Waker>,
    is_closed: bool,
}

impl SubmissionWindow {
    pub(super) fn new(places: usize) -> Self {
        let state = State { free: places, wakers: Vec::new(), is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes a place. Blocks while there is none, until the deadline.
    pub(super) fn enter(&self, until: Option<Monotonic>) -> Result<(), SubmitErrorKind> {
        let mut state = self.state.lock();
        loop {
            if let Poll::Ready(entered) = state.try_enter() {
                return entered;
            }
            state = match until.map(|until| until.saturating_since(now())) {
                None => self.changed.wait(state),
                Some(left) if left.is_zero() => return Err(SubmitErrorKind::TimedOut),
                Some(left) => self.changed.wait_timeout(state, left).0,
            };
        }
    }

    /// Takes a place, or wakes the task when there may be one.
    pub(super) fn poll_enter(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SubmitErrorKind>> {
        // Cloned first, because a waker is user code.
        let waker = context.waker().clone();
        let mut state = self.state.lock();
        let entered = state.try_enter();
        if entered.is_pending() {
            state.wakers.push(waker);
        }
        entered
    }

    /// Gives places back.
    pub(super) fn leave(&self, places: usize) {
        let mut state = self.state.lock();
        state.free += places;
        self.wake(state);
    }

    /// Lets nobody in from now on.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.wake(state);
    }

    fn wake(&self, mut state: brigade_sys::sync::MutexGuard<'_, State>) {
        // All of them, because a future that was dropped would not pass its turn on.
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        for waker in wakers {
            waker.wake();
        }
    }
}

impl State {
    fn try_enter(&mut self) -> Poll<Result<(), SubmitErrorKind>> {
        if self.is_closed {
            return Poll::Ready(Err(closed()));
        }
        match self.free.checked_sub(1) {
            Some(free) => {
                self.free = free;
                Poll::Ready(Ok(()))
            }
            None => Poll::Pending,
        }
    }
}

brigade_sys::debug_fields!(impl SubmissionWindow { |it| free: it.state.lock().free });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_and_come_back() {
        let window = SubmissionWindow::new(1);
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(window.enter(None), Ok(()));
        assert_eq!(window.enter(Some(now())), Err(SubmitErrorKind::TimedOut));
        assert_eq!(window.poll_enter(&mut context), Poll::Pending);
        window.leave(1);
        assert_eq!(window.poll_enter(&mut context), Poll::Ready(Ok(())));
        window.leave(1);
        assert_eq!(window.enter(Some(now())), Ok(()));
        window.close();
        assert_eq!(window.enter(None), Err(closed()));
        assert_eq!(window.enter(Some(now())), Err(closed()));
    }
}
