//! A task before its submission: its function and its settings.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Handle;
use crate::callee::Callee;
use crate::error::SubmitError;
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
}

impl<'pool, A, R> TaskBuilder<'pool, A, R>
where
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, callee: Result<Callee, String>) -> Self {
        Self { pool, callee, options: TaskOptions::default(), types: PhantomData }
    }

    /// How often the task runs again when its worker dies under it. Only for tasks that may run twice. Default: 0.
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
