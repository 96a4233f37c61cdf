//! The submission of a task as a future, which waits for the server.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use brigade_pool::{SubmitError, SubmitErrorKind};

use super::handle::ClusterHandle;
use super::shared::Shared;
use super::submission::Submission;
use super::task::{closed, send};

/// The submission of a task as a future; returned by
/// [`Cluster::submit_async`](crate::Cluster::submit_async) and
/// [`ClusterTask::submit_async`](crate::ClusterTask::submit_async).
///
/// Dropping it before it is ready submits nothing.
#[must_use = "a future submits nothing until it is awaited"]
pub struct ClusterSubmitFuture<A, R> {
    shared: Arc<Shared>,
    /// The argument and the task made of it, or the reason why it cannot be submitted. `None` once
    /// the future was ready.
    task: Option<(A, Result<Submission, SubmitErrorKind>)>,
    result: PhantomData<fn() -> R>,
}

impl<A, R> ClusterSubmitFuture<A, R> {
    pub(super) fn new(
        shared: Arc<Shared>,
        argument: A,
        task: Result<Submission, SubmitErrorKind>,
    ) -> Self {
        Self { shared, task: Some((argument, task)), result: PhantomData }
    }
}

impl<A, R> Future for ClusterSubmitFuture<A, R> {
    type Output = Result<ClusterHandle<R>, SubmitError<A>>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { shared, task, .. } = self.get_mut();
        let entered = match task {
            Some((_, Ok(_))) => ready!(shared.window.poll_enter(context)),
            Some((_, Err(_))) | None => Ok(()),
        };
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let (argument, task) = task.take().expect("polled again after it was ready");
        let sent = match (entered, task) {
            (Ok(()), Ok(submission)) => send(shared, submission),
            (Ok(()), Err(kind)) => Err(kind),
            (Err(_), _) => Err(closed()),
        };
        Poll::Ready(sent.map_err(|kind| SubmitError::new(kind, argument)))
    }
}

/// The argument is never pinned.
impl<A, R> Unpin for ClusterSubmitFuture<A, R> {}

impl<A, R> fmt::Debug for ClusterSubmitFuture<A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let submission = self.task.as_ref().and_then(|(_, task)| task.as_ref().ok());
        out.debug_struct("ClusterSubmitFuture")
            .field("ticket", &submission.map(|submission| submission.ticket))
            .finish_non_exhaustive()
    }
}
