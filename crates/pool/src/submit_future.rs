//! The submission of a task as a future, which waits for room in the queue.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use brigade_scheduler::Constraints;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Pool;
use crate::cell::TaskCell;
use crate::drive::Place;
use crate::error::{SubmitError, SubmitErrorKind};
use crate::handle::Handle;

/// The submission of a task as a future; returned by [`Pool::submit_async`] and
/// [`TaskBuilder::submit_async`].
///
/// It is ready as soon as the queue has room. Futures that wait for room get it in the order in
/// which they were first polled. Dropping it before it is ready submits nothing.
///
/// [`TaskBuilder::submit_async`]: crate::TaskBuilder::submit_async
#[must_use = "a future submits nothing until it is awaited"]
pub struct SubmitFuture<A, R> {
    /// The task, or the reason why it cannot be submitted, with the argument; `None` once the
    /// future was ready.
    task: Option<(Result<Unsubmitted, SubmitErrorKind>, A)>,
    /// Set while the future waits for room.
    place: Option<Place>,
    result: PhantomData<fn() -> R>,
}

/// A task with its settings, before it is submitted.
#[derive(Debug)]
pub(crate) struct Unsubmitted {
    pub(crate) cell: TaskCell,
    pub(crate) retries: u32,
    pub(crate) constraints: Option<Box<Constraints>>,
}

impl Pool {
    /// Submits a task like [`submit`](Self::submit), as a future that waits for room in the queue
    /// and works with any runtime.
    ///
    /// Nothing is submitted before the future is polled, or if it is dropped before it is ready.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # async fn serve(pool: brigade::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let handle = pool.submit_async(square, 7).await?;
    /// assert_eq!(handle.await?, 49);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_async<F, A, R>(&self, function: F, argument: A) -> SubmitFuture<A, R>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task(function).submit_async(argument)
    }
}

impl<A, R> SubmitFuture<A, R> {
    pub(crate) fn new(argument: A, task: Result<Unsubmitted, SubmitErrorKind>) -> Self {
        Self { task: Some((task, argument)), place: None, result: PhantomData }
    }
}

impl<A, R> Future for SubmitFuture<A, R> {
    type Output = Result<Handle<R>, SubmitError<A>>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { task, place, .. } = self.get_mut();
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let (unsubmitted, _) = task.as_mut().expect("polled again after it was ready");
        if let Ok(Unsubmitted { cell, retries, constraints }) = unsubmitted {
            let pool = cell.pool_of_handle();
            let submitted = pool.poll_submit(cell, *retries, constraints, place, context.waker());
            if let Err(kind) = ready!(submitted) {
                *unsubmitted = Err(kind);
            }
        }
        let Some((submitted, argument)) = task.take() else { unreachable!("checked above") };
        Poll::Ready(match submitted {
            Ok(task) => Ok(Handle::new(task.cell)),
            Err(kind) => Err(SubmitError::new(kind, argument)),
        })
    }
}

/// The argument is never pinned.
impl<A, R> Unpin for SubmitFuture<A, R> {}

impl<A, R> Drop for SubmitFuture<A, R> {
    fn drop(&mut self) {
        if let (Some(place), Some((Ok(task), _))) = (self.place.take(), &self.task) {
            task.cell.pool_of_handle().leave_line(place);
        }
    }
}

impl<A, R> fmt::Debug for SubmitFuture<A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let task = self.task.as_ref().map(|(task, _)| task.as_ref().map(|task| task.cell.id));
        out.debug_struct("SubmitFuture")
            .field("task", &task)
            .field("waits", &self.place.is_some())
            .finish_non_exhaustive()
    }
}
