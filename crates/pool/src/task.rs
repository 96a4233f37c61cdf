//! A task before its submission: its function and its settings.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Handle;
use crate::callee::Callee;
use crate::config::{Config, Deadlines};
use crate::error::SubmitError;
use crate::limits::Limits;
use crate::machine::Terms;
use crate::pool::{Pool, Room};

/// A task with settings of its own; get one from [`Pool::task`] or [`Pool::named_task`].
#[must_use = "a task is nothing until it is submitted"]
pub struct TaskBuilder<'pool, A, R> {
    pool: &'pool Pool,
    /// Or why no worker can call it, which is an error of the submit.
    callee: Result<Callee, String>,
    options: TaskOptions,
    types: PhantomData<fn(A) -> R>,
}

/// What can be set for one task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskOptions {
    pub(crate) retries: u32,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) priority: i32,
    pub(crate) deadlines: Deadlines,
}

impl TaskOptions {
    /// What the task's cell and the machine have to know.
    pub(crate) fn terms(&self, config: &Config) -> (Option<Box<Limits>>, Option<Box<Terms>>) {
        let (own, default) = (&self.deadlines, &config.deadlines);
        let limits = Limits::new(
            own.queue.or(default.queue),
            own.soft.or(default.soft),
            own.hard.or(default.hard),
            config.stop_grace,
        );
        if limits.is_none() && self.priority == 0 {
            return (None, None);
        }
        let terms = limits.as_ref().map_or_else(Terms::default, Limits::terms);
        (limits.map(Box::new), Some(Box::new(Terms { priority: self.priority, ..terms })))
    }
}

impl<'pool, A, R> TaskBuilder<'pool, A, R>
where
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, callee: Result<Callee, String>) -> Self {
        Self { pool, callee, options: TaskOptions::default(), types: PhantomData }
    }

    /// How long the task may run, from its begin; then its worker is killed, and the outcome is
    /// [`DeadlineExceeded`](crate::TaskErrorKind::DeadlineExceeded). A result that was complete before counts.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.options.deadlines.hard = Some(limit);
        self
    }

    /// After so long a run `worker::cancelled()` turns true in the task, which may then clean up and return. If it has not
    /// returned at its [`deadline`](Self::deadline), or without one within the pool's
    /// [`stop_grace`](crate::Builder::stop_grace), its worker is killed.
    pub fn soft_deadline(mut self, limit: Duration) -> Self {
        self.options.deadlines.soft = Some(limit);
        self
    }

    /// How long the task may wait, from its submission until a worker begins it; then it is given up.
    pub fn queue_deadline(mut self, limit: Duration) -> Self {
        self.options.deadlines.queue = Some(limit);
        self
    }

    /// Tasks with a higher priority begin first, in the order of submission within one. Default: 0.
    ///
    /// A step of priority is worth ten seconds of waiting, so that no task waits for ever. What was sent to a worker
    /// already, to hide the way there, is not overtaken: at most half a millisecond of work, or one task of up to 50 ms.
    pub fn priority(mut self, priority: i32) -> Self {
        self.options.priority = priority;
        self
    }

    /// How often the task runs again when its worker dies under it, or after a deadline for running. Only for tasks that
    /// may run twice. Default: 0.
    pub fn retries(mut self, retries: u32) -> Self {
        self.set_retries(retries);
        self
    }

    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.options.retries = retries;
    }

    /// What errors and events call the task.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.options.label = Some(label.into());
        self
    }

    /// Submits the task; waits while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit`].
    pub fn submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::Wait)
    }

    /// Submits the task if the queue has room.
    ///
    /// # Errors
    /// As [`Pool::try_submit`].
    pub fn try_submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::Now)
    }

    /// Submits the task; waits at most `timeout` while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit_timeout`].
    pub fn submit_timeout(
        &self,
        argument: A,
        timeout: Duration,
    ) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::within(timeout))
    }

    fn submit_with(&self, argument: A, room: Room) -> Result<Handle<R>, SubmitError<A>> {
        self.pool.submit_to(&self.callee, argument, self.options.clone(), room)
    }
}

impl<A, R> fmt::Debug for TaskBuilder<'_, A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TaskBuilder")
            .field("callee", &self.callee)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
