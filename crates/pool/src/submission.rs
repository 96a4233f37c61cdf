//! Tasks on their way to the queue, and the pool as the backend of its handles.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use brigade_crash::Stack;
use brigade_scheduler::Constraints;
use brigade_sys::clock::Monotonic;
use brigade_task::backend::{Backend, Callbacks, Promise, Wait};

use crate::cell::{Facts, TaskCell};
use crate::drive::{Glance, Place, Shared};
use crate::error::SubmitErrorKind;
use crate::payload::Value;

/// A task with its settings, before it is submitted.
pub(crate) struct Submission {
    pub(crate) cell: TaskCell,
    pub(crate) retries: u32,
    pub(crate) constraints: Option<Box<Constraints>>,
}

/// A task that waits for room in the queue.
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Submitting {
    /// `None` once it is submitted.
    submission: Option<Submission>,
    pool: Arc<Shared>,
    place: Option<Place>,
}

impl Submission {
    pub(crate) fn into_future(self, pool: &Arc<Shared>) -> Submitting {
        Submitting { submission: Some(self), pool: Arc::clone(pool), place: None }
    }
}

impl Future for Submitting {
    type Output = Result<Promise<Facts>, SubmitErrorKind>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { submission, pool, place } = self.get_mut();
        if let Some(Submission { cell, retries, constraints }) = submission {
            let waker = context.waker();
            ready!(pool.poll_submit(cell, *retries, constraints, place, waker))?;
        }
        let submitted = submission.take().map(|submission| submission.cell.into_promise());
        Poll::Ready(submitted.ok_or(SubmitErrorKind::PoolClosed))
    }
}

impl Drop for Submitting {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.pool.leave_line(place);
        }
    }
}

impl Backend<Facts> for Shared {
    #[inline]
    fn is_forked(&self) -> bool {
        Self::is_forked(self)
    }

    fn wait_for(&self, wait: &dyn Wait, deadline: Option<Instant>) {
        Self::wait_for(self, wait, deadline);
    }

    fn collect(&self) {
        Self::collect(self);
    }

    fn callbacks(&self) -> &Arc<Callbacks<Value>> {
        &self.callbacks
    }

    fn running_since(&self, task: &Facts) -> Option<Monotonic> {
        Self::running_since(self, task.task_ref()?)
    }

    fn stack(&self, task: &Facts) -> Option<Stack> {
        Self::stack(self, task.task_ref()?, true)
    }

    fn cancel(&self, task: &Facts) {
        Self::cancel(self, task);
    }

    fn kill(&self, task: &Facts) -> bool {
        task.task_ref().is_some_and(|task| Self::kill(self, task))
    }

    fn glance(&self, task: &Promise<Facts>) -> bool {
        if (task.take_may_look() || self.woken.are_polled())
            && task.is_pending()
            && Self::glance(self, task) == Glance::Yield
        {
            task.set_may_look();
            return false;
        }
        true
    }

    fn polled(&self, task: &Facts) {
        self.woken.poll(task.id);
    }
}
