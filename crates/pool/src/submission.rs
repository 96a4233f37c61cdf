//! Tasks on their way to the queue, and the pool as the backend of its handles.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use brigade_scheduler::Constraints;
use brigade_task::backend::{Backend, Callbacks, Wait};

use crate::cell::{Content, Facts, TaskCell};
use crate::drive::{Place, Shared};
use crate::error::SubmitErrorKind;
use crate::payload::Value;

/// A task with its settings, before it is submitted.
#[derive(Debug)]
pub struct Submission {
    pub(crate) cell: TaskCell,
    pub(crate) retries: u32,
    pub(crate) constraints: Option<Box<Constraints>>,
    /// Set while it waits for room.
    pub(crate) place: Option<Place>,
}

impl Backend for Shared {
    type Facts = Facts;
    type Content = Content;
    type Task = TaskCell;
    type Submission = Submission;

    fn poll_submit(
        submission: &mut Submission,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SubmitErrorKind>> {
        let Submission { cell, retries, constraints, place } = submission;
        let pool = Arc::clone(cell.pool_of_handle());
        pool.poll_submit(cell, *retries, constraints, place, context.waker())
    }

    fn submitted(submission: Submission) -> TaskCell {
        submission.cell
    }

    fn give_up(submission: Submission) {
        if let Some(place) = submission.place {
            submission.cell.pool_of_handle().leave_line(place);
        }
    }

    #[inline]
    fn is_forked(&self) -> bool {
        Self::is_forked(self)
    }

    #[inline]
    fn wait_for(&self, wait: &impl Wait, deadline: Option<Instant>) {
        Self::wait_for(self, wait, deadline);
    }

    fn collect(&self) {
        Self::collect(self);
    }

    fn callbacks(&self) -> &Arc<Callbacks<Value>> {
        &self.callbacks
    }
}
