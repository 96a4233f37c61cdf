//! The submission of a task as a future, which waits for room in the queue.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::backend::Backend;
use crate::error::{SubmitError, SubmitErrorKind};
use crate::handle::Handle;

/// The submission of a task as a future; returned by `submit_async`.
///
/// It is ready as soon as the queue has room. Futures that wait for room get it in the order in
/// which they were first polled. Dropping it before it is ready submits nothing.
#[must_use = "a future submits nothing until it is awaited"]
pub struct SubmitFuture<A, R, B: Backend> {
    /// The task, or the reason why it cannot be submitted, with the argument; `None` once the
    /// future was ready.
    task: Option<(Result<B::Submission, SubmitErrorKind>, A)>,
    result: PhantomData<fn() -> R>,
}

impl<A, R, B: Backend> SubmitFuture<A, R, B> {
    /// Creates the future of a task made of `argument`.
    #[doc(hidden)]
    pub fn new(argument: A, task: Result<B::Submission, SubmitErrorKind>) -> Self {
        Self { task: Some((task, argument)), result: PhantomData }
    }
}

impl<A, R, B: Backend> Future for SubmitFuture<A, R, B> {
    type Output = Result<Handle<R, B>, SubmitError<A>>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { task, .. } = self.get_mut();
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let (submission, _) = task.as_mut().expect("polled again after it was ready");
        if let Ok(waiting) = submission
            && let Err(kind) = ready!(B::poll_submit(waiting, context))
        {
            *submission = Err(kind);
        }
        let Some((submission, argument)) = task.take() else { unreachable!("checked above") };
        Poll::Ready(match submission {
            Ok(submitted) => Ok(Handle::new(B::submitted(submitted))),
            Err(kind) => Err(SubmitError::new(kind, argument)),
        })
    }
}

impl<A, R, B: Backend> Drop for SubmitFuture<A, R, B> {
    fn drop(&mut self) {
        if let Some((Ok(submission), _)) = self.task.take() {
            B::give_up(submission);
        }
    }
}

/// The argument is never pinned.
impl<A, R, B: Backend> Unpin for SubmitFuture<A, R, B> {}

impl<A, R, B: Backend> fmt::Debug for SubmitFuture<A, R, B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let submission = self.task.as_ref().map(|(submission, _)| submission);
        out.debug_struct("SubmitFuture").field("submission", &submission).finish_non_exhaustive()
    }
}
