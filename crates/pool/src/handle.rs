//! One submitted task, as its submitter sees it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_wire::{TaskId, codec};
use serde::de::DeserializeOwned;

use crate::cell::{RawOutcome, TaskCell};
use crate::drive::Shared;
use crate::error::{TaskError, TaskErrorKind};

/// A submitted task. Dropping it lets the task run and drops its result.
///
/// It is a [`Future`] as well, and needs no particular runtime.
#[must_use = "without its handle a task's result is lost; drop it explicitly if that is meant"]
pub struct Handle<R> {
    cell: Arc<TaskCell>,
    shared: Arc<Shared>,
    result: PhantomData<fn() -> R>,
}

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Not begun; `cancel` works.
    Queued,
    /// A worker has begun it.
    Running,
    /// It has an outcome other than a cancellation.
    Done,
    /// It was taken back before it began.
    Cancelled,
}

impl<R> Handle<R> {
    pub(crate) fn new(cell: Arc<TaskCell>, shared: Arc<Shared>) -> Self {
        Self { cell, shared, result: PhantomData }
    }

    /// The task's number, never used twice in a pool.
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    /// Whether the outcome is there.
    pub fn is_done(&self) -> bool {
        self.cell.ended().is_some()
    }

    /// How far the task has come, at this moment.
    pub fn state(&self) -> TaskState {
        match self.cell.ended() {
            Some(true) => TaskState::Cancelled,
            Some(false) => TaskState::Done,
            None => self
                .cell
                .place()
                .map_or(TaskState::Queued, |place| self.shared.state_of(place, &self.cell)),
        }
    }

    /// Takes the task back. True when it had not begun and now never will; false when it runs or has ended.
    pub fn cancel(&self) -> bool {
        match self.cell.ended() {
            Some(cancelled) => cancelled,
            None => self.cell.place().is_some_and(|place| self.shared.cancel(place, &self.cell)),
        }
    }
}

impl<R> Handle<R> {
    /// Ends the task, also while it runs: its worker is killed then and replaced, and no other task is harmed. True when
    /// the task has not begun and now never will, or its worker is being killed; false when it has ended.
    ///
    /// A result that was complete before the kill counts, so the outcome may still be one.
    pub fn kill(&self) -> bool {
        match self.cell.ended() {
            Some(_) => false,
            None => self.cell.place().is_some_and(|place| self.shared.kill(place, &self.cell)),
        }
    }
}

impl<R: DeserializeOwned + 'static> Handle<R> {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    ///
    /// # Panics
    /// When the outcome was taken before, by `wait_timeout`, `try_get` or as a future.
    pub fn wait(self) -> Result<R, TaskError> {
        self.shared.wait_for(&*self.cell, None);
        let outcome = self.cell.try_take().expect("the outcome of a task is taken once");
        self.decode(outcome)
    }

    /// Waits for the outcome at most `timeout`; the task goes on if it takes longer.
    ///
    /// `None` when the time is over, or the outcome was taken before.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        // A time too long for the clock is as good as none.
        let deadline = Instant::now().checked_add(timeout);
        self.shared.wait_for(&*self.cell, deadline);
        self.cell.try_take().map(|outcome| self.decode(outcome))
    }

    /// The outcome, if it is there and was not taken before.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    pub fn try_get(&mut self) -> Option<Result<R, TaskError>> {
        if !self.is_done() {
            self.shared.collect();
        }
        self.cell.try_take().map(|outcome| self.decode(outcome))
    }

    fn decode(&self, outcome: RawOutcome) -> Result<R, TaskError> {
        outcome?.decode().map_err(|error| {
            let message =
                format!("the result arrived and could not be decoded: {}", codec::chain(&error));
            let attempt = brigade_wire::Attempt::first();
            TaskError::new(TaskErrorKind::Codec { message }).of_task(self.cell.id, attempt, None)
        })
    }
}

impl<R: DeserializeOwned + 'static> Future for Handle<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// When polled again after it was ready, as futures may.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.cell.poll(context.waker()) {
            Ok(Some(outcome)) => Poll::Ready(self.decode(outcome)),
            Ok(None) => Poll::Pending,
            Err(()) => panic!("the outcome of a task is taken once"),
        }
    }
}

impl<R> fmt::Debug for Handle<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle")
            .field("task", &self.id())
            .field("state", &self.state())
            .field("result", &std::any::type_name::<R>())
            .finish()
    }
}
