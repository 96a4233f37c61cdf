//! Submissions as futures, and the cluster as the backend of its handles.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use brigade_task::SubmitErrorKind;
use brigade_task::backend::{Backend, Callbacks, CompletionQueue, Wait, park_for};

use super::failure::closed;
use super::record::{Encoded, Facts, Record};
use super::shared::{Command, Shared};
use super::submission::{OutcomeTarget, Submission};

/// Time that a cancellation waits for the server.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

impl Backend<Facts> for Shared {
    fn is_forked(&self) -> bool {
        Self::is_forked(self)
    }

    /// The driver brings the outcome about.
    fn wait_for(&self, wait: &dyn Wait, deadline: Option<Instant>) {
        if !self.is_forked() {
            park_for(wait, deadline);
        }
    }

    fn callbacks(&self) -> &Arc<Callbacks<Encoded>> {
        &self.callbacks
    }

    fn cancel(&self, task: &Facts) {
        self.send(Command::End { ticket: task.ticket, kill: false });
    }

    fn kill(&self, task: &Facts) -> bool {
        self.send(Command::End { ticket: task.ticket, kill: true });
        false
    }

    fn wait_for_end(&self, task: &Record) {
        // The record has room for one sleeper of its own, but several threads may end the task.
        let completions = Arc::<CompletionQueue>::default();
        task.watch(&completions, 0);
        park_for(&*completions, Instant::now().checked_add(CANCEL_PATIENCE));
        task.unwatch(&completions);
    }
}

/// A task that waits for a place in the window.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct Submitting {
    shared: Arc<Shared>,
    /// `None` once it is sent.
    submission: Option<Box<Submission>>,
}

impl Submitting {
    pub(super) fn new(submission: Submission, shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), submission: Some(Box::new(submission)) }
    }
}

impl Future for Submitting {
    type Output = Result<Record, SubmitErrorKind>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let entered = ready!(self.shared.window.poll_enter(context));
        let submission = self.submission.take().filter(|_| entered.is_ok());
        Poll::Ready(submission.ok_or_else(closed).and_then(|it| send(&self.shared, it)))
    }
}

/// Passes a task, which has a place in the window, to the driver.
pub(super) fn send(
    shared: &Shared,
    submission: Box<Submission>,
) -> Result<Record, SubmitErrorKind> {
    let OutcomeTarget::Task(record) = &submission.target else { return Err(closed()) };
    let record = record.clone();
    if shared.send(Command::Submit(submission)) { Ok(record) } else { Err(closed()) }
}
