//! The submission of a task as a future, which waits for room in the queue.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::backend::{Facts, Promise};
use crate::error::{SubmitError, SubmitErrorKind};
use crate::handle::Handle;

/// The submission of a task as a future; returned by `submit_async`.
///
/// It is ready as soon as the queue has room. Futures that wait for room get it in the order in
/// which they were first polled. Dropping it before it is ready submits nothing.
#[must_use = "a future submits nothing until it is awaited"]
pub struct SubmitFuture<A, R, S> {
    /// The task on its way to the queue, or the reason why it cannot be submitted, with the
    /// argument; `None` once the future was ready.
    task: Option<(Result<S, SubmitErrorKind>, A)>,
    result: PhantomData<fn() -> R>,
}

impl<A, R, S> SubmitFuture<A, R, S> {
    /// Creates the future of a task made of `argument`.
    #[doc(hidden)]
    pub fn new(argument: A, task: Result<S, SubmitErrorKind>) -> Self {
        Self { task: Some((task, argument)), result: PhantomData }
    }
}

impl<A, R, S, F: Facts> Future for SubmitFuture<A, R, S>
where
    S: Future<Output = Result<Promise<F>, SubmitErrorKind>> + Unpin,
{
    type Output = Result<Handle<R, F>, SubmitError<A>>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { task, .. } = self.get_mut();
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let (submission, _) = task.as_mut().expect("polled again after it was ready");
        let submitted = match submission {
            Ok(submission) => ready!(Pin::new(submission).poll(context)),
            Err(kind) => Err(kind.clone()),
        };
        let Some((_, argument)) = task.take() else { unreachable!("checked above") };
        Poll::Ready(match submitted {
            Ok(task) => Ok(Handle::new(task)),
            Err(kind) => Err(SubmitError::new(kind, argument)),
        })
    }
}

/// The argument is never pinned.
impl<A, R, S> Unpin for SubmitFuture<A, R, S> {}

brigade_sys::debug_fields! {
    impl<A, R, S: fmt::Debug> SubmitFuture<A, R, S> {
        |it| submission: it.task.as_ref().map(|(submission, _)| submission)
    }
}
