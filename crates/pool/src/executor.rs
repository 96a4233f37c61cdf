//! Code that runs tasks either in a pool or on a cluster.

use std::future::Future;
use std::time::Duration;

use brigade_worker::Task;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{SubmitError, TaskError};
use crate::handle::{Handle, TaskState};
use crate::pool::Pool;

/// Runs tasks: a [`Pool`] on this machine, or a cluster on many.
///
/// ```
/// use brigade::{Executor, Pool, Task, TaskHandle};
///
/// fn square(x: u64) -> u64 {
///     x * x
/// }
///
/// static SQUARE: Task<u64, u64> = Task::new("square/1", square);
///
/// fn sum_of_squares(executor: &impl Executor) -> Result<u64, Box<dyn std::error::Error>> {
///     let first = executor.submit_key(&SQUARE, 1)?;
///     let mut sum = first.wait()?;
///     for square in executor.map_key(&SQUARE, 2..=4) {
///         sum += square?;
///     }
///     Ok(sum)
/// }
///
/// # brigade::init();
/// assert_eq!(sum_of_squares(&Pool::builder().workers(1).build()?)?, 30);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With the feature `cluster`, `brigade::cluster::Cluster` is one too; its documentation has an
/// example that chooses between both.
pub trait Executor: Send + Sync {
    /// The handle of a task.
    type Handle<R: DeserializeOwned + 'static>: TaskHandle<R>;

    /// Submits a task. Blocks while the queue is full.
    ///
    /// # Errors
    /// Returns a [`SubmitError`], which contains the argument, if the task is not accepted.
    fn submit_key<A, R>(
        &self,
        task: &Task<A, R>,
        argument: A,
    ) -> Result<Self::Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static;

    /// Applies the function of a key to each input and yields the results in the order of the
    /// inputs. The iterator is lazy: it takes inputs as results are consumed.
    fn map_key<A, R, I>(
        &self,
        task: &Task<A, R>,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>>
    where
        I: IntoIterator<Item = A>,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static;
}

/// The handle of a task that an [`Executor`] runs. It is a future, for any runtime.
pub trait TaskHandle<R>: Future<Output = Result<R, TaskError>> + Sized {
    /// Blocks until the task has finished.
    ///
    /// # Errors
    /// The [`TaskError`] that ended the task.
    fn wait(self) -> Result<R, TaskError>;

    /// Blocks for at most `timeout` until the task has finished. Returns `None` if it has not.
    fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>>;

    /// Cancels the task. Returns `true` if it will never run.
    fn cancel(&self) -> bool;

    /// Ends the task even if it is running. Returns `true` if it is ended, and `false` if it has
    /// finished.
    fn kill(&self) -> bool;

    /// Calls `callback` with the outcome, on a thread of the executor.
    fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static);

    /// Returns the current progress of the task.
    fn state(&self) -> TaskState;

    /// Returns `true` if the outcome has arrived.
    fn is_done(&self) -> bool;
}

impl Executor for Pool {
    type Handle<R: DeserializeOwned + 'static> = Handle<R>;

    fn submit_key<A, R>(&self, task: &Task<A, R>, argument: A) -> Result<Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        Self::submit_key(self, task, argument)
    }

    fn map_key<A, R, I>(
        &self,
        task: &Task<A, R>,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>>
    where
        I: IntoIterator<Item = A>,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        Self::map_key(self, task, inputs)
    }
}

impl<R: DeserializeOwned + 'static> TaskHandle<R> for Handle<R> {
    fn wait(self) -> Result<R, TaskError> {
        Self::wait(self)
    }

    fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        Self::wait_timeout(self, timeout)
    }

    fn cancel(&self) -> bool {
        Self::cancel(self)
    }

    fn kill(&self) -> bool {
        Self::kill(self)
    }

    fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) {
        Self::on_done(self, callback);
    }

    fn state(&self) -> TaskState {
        Self::state(self)
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
}
