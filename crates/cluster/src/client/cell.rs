//! The client's record of a single task, shared by its handle and the driver.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use brigade_pool::{TaskError, TaskErrorKind};
use brigade_sys::sync::{Condvar, Mutex};
use bytes::Bytes;

use super::machine::Ticket;

/// The encoded value of a task, or the reason why there is none.
pub(super) type Outcome = Result<Bytes, TaskError>;

/// A callback, and the queue of the thread that runs it.
pub(super) struct Callback {
    pub(super) run: Box<dyn FnOnce(Outcome) + Send>,
    pub(super) queue: Sender<Box<dyn FnOnce() + Send>>,
}

/// A task. The outcome is stored once, by the driver, and taken once, by the handle.
pub(super) struct TaskCell {
    pub(super) ticket: Ticket,
    pub(super) label: Option<Arc<str>>,
    /// Nothing that panics runs under this lock.
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Slot,
    waker: Option<Waker>,
    callbacks: Vec<Callback>,
}

#[derive(Default)]
enum Slot {
    #[default]
    Pending,
    Ready(Outcome),
    Taken(Kind),
}

/// The kind of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Finished,
    Cancelled,
    Killed,
}

impl Kind {
    fn of(outcome: &Outcome) -> Self {
        match outcome.as_ref().map_err(TaskError::kind) {
            Err(TaskErrorKind::Cancelled) => Self::Cancelled,
            Err(TaskErrorKind::Killed) => Self::Killed,
            _ => Self::Finished,
        }
    }
}

impl TaskCell {
    pub(super) fn new(ticket: Ticket, label: Option<Arc<str>>) -> Arc<Self> {
        Arc::new(Self { ticket, label, state: Mutex::default(), arrived: Condvar::new() })
    }

    /// Stores the outcome and wakes everybody who waits for it. A second one is ignored.
    pub(super) fn complete(&self, outcome: Outcome) {
        let mut state = self.state.lock();
        if !matches!(state.outcome, Slot::Pending) {
            return;
        }
        for callback in state.callbacks.drain(..) {
            callback.push(outcome.clone());
        }
        state.outcome = Slot::Ready(outcome);
        let waker = state.waker.take();
        drop(state);
        self.arrived.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Returns the kind of the outcome if it has arrived, even if it has been taken since.
    pub(super) fn kind(&self) -> Option<Kind> {
        match &self.state.lock().outcome {
            Slot::Pending => None,
            Slot::Ready(outcome) => Some(Kind::of(outcome)),
            Slot::Taken(kind) => Some(*kind),
        }
    }

    /// Blocks until the outcome has arrived, or until the deadline.
    pub(super) fn wait(&self, deadline: Option<Instant>) {
        let mut state = self.state.lock();
        while matches!(state.outcome, Slot::Pending) {
            let Some(deadline) = deadline else {
                state = self.arrived.wait(state);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.arrived.wait_timeout(state, left).0;
        }
    }

    /// Takes the outcome if it has arrived and was not taken before.
    pub(super) fn take(&self) -> Option<Outcome> {
        self.state.lock().take()
    }

    /// Takes the outcome, or wakes the task when it arrives.
    ///
    /// # Panics
    /// If it was taken before.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Outcome> {
        // Cloned and dropped without the lock, because a waker is user code.
        let waker = context.waker().clone();
        let mut state = self.state.lock();
        let before = match &state.outcome {
            Slot::Pending => state.waker.replace(waker),
            Slot::Ready(_) | Slot::Taken(_) => {
                let outcome = state.take();
                drop(state);
                #[expect(clippy::expect_used, reason = "a mistake of the caller, see Panics")]
                return Poll::Ready(outcome.expect("the outcome was already taken"));
            }
        };
        drop(state);
        drop(before);
        Poll::Pending
    }

    /// Registers a callback. Returns `false` if the outcome was taken before.
    pub(super) fn on_done(&self, callback: Callback) -> bool {
        let mut state = self.state.lock();
        match &state.outcome {
            Slot::Pending => state.callbacks.push(callback),
            Slot::Ready(outcome) => callback.push(outcome.clone()),
            Slot::Taken(_) => return false,
        }
        true
    }
}

impl State {
    fn take(&mut self) -> Option<Outcome> {
        let Slot::Ready(outcome) = &self.outcome else { return None };
        let kind = Kind::of(outcome);
        match std::mem::replace(&mut self.outcome, Slot::Taken(kind)) {
            Slot::Ready(outcome) => Some(outcome),
            Slot::Pending | Slot::Taken(_) => None,
        }
    }
}

impl Callback {
    fn push(self, outcome: Outcome) {
        let Self { run, queue } = self;
        // The thread ends only after the last sender is gone, and this is one.
        let _ = queue.send(Box::new(move || run(outcome)));
    }
}

impl fmt::Debug for TaskCell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TaskCell")
            .field("ticket", &self.ticket)
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}
