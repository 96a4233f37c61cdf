//! The task as its handle uses it, and the cluster as the backend of its handles.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use brigade_task::SubmitErrorKind;
use brigade_task::backend::{
    self, Backend, Callbacks, CompletionQueue, OutcomeKind, Plain, Wait, park_for,
};

use super::failure::closed;
use super::record::{Encoded, Facts, Record};
use super::shared::{Command, Shared};
use super::submission::{Submission, Target};

/// Time that a cancellation waits for the server.
pub(super) const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A task as its handle holds it.
#[derive(Debug, Clone)]
pub struct TaskCell {
    record: Record,
    shared: Arc<Shared>,
}

impl TaskCell {
    pub(super) fn new(record: Record, shared: &Arc<Shared>) -> Self {
        Self { record, shared: Arc::clone(shared) }
    }

    /// Asks the driver to end the task. Does not block.
    fn end(&self, kill: bool) {
        self.shared.send(Command::End { ticket: self.record.ticket, kill });
    }

    /// Returns the kind of the outcome, for which it waits for some time.
    fn wait_for_end(&self) -> Option<OutcomeKind> {
        // The record has room for one sleeper of its own, but several threads may end the task.
        let completions = Arc::<CompletionQueue>::default();
        self.record.watch(&completions, 0);
        park_for(&*completions, Instant::now().checked_add(CANCEL_PATIENCE));
        self.record.unwatch(&completions);
        self.record.outcome_kind()
    }
}

impl backend::Task for TaskCell {
    type Backend = Shared;

    fn backend(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn promise(&self) -> &Record {
        &self.record
    }

    fn promise_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.record.label.as_ref()
    }

    fn cancel(&self) {
        self.end(false);
        self.wait_for_end();
    }

    fn kill(&self) -> bool {
        self.end(true);
        self.wait_for_end() == Some(OutcomeKind::Killed)
    }

    fn request_cancel(&self) {
        self.end(false);
    }

    fn request_kill(&self) {
        self.end(true);
    }
}

impl Backend for Shared {
    type Facts = Facts;
    type Content = Plain<Encoded>;
    type Task = TaskCell;
    type Submission = Unsubmitted;

    fn poll_submit(
        unsubmitted: &mut Unsubmitted,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), SubmitErrorKind>> {
        let shared = &unsubmitted.cell.shared;
        let entered = ready!(shared.window.poll_enter(context));
        let sent = entered.is_ok()
            && unsubmitted.submission.take().is_some_and(|it| shared.send(Command::Submit(it)));
        Poll::Ready(if sent { Ok(()) } else { Err(closed()) })
    }

    fn submitted(unsubmitted: Unsubmitted) -> TaskCell {
        unsubmitted.cell
    }

    fn is_forked(&self) -> bool {
        Self::is_forked(self)
    }

    /// The driver brings the outcome about.
    fn wait_for(&self, wait: &impl Wait, deadline: Option<Instant>) {
        if !self.is_forked() {
            park_for(wait, deadline);
        }
    }

    fn callbacks(&self) -> &Arc<Callbacks<Encoded>> {
        &self.callbacks
    }
}

/// A task that is to be submitted, and its record.
#[derive(Debug)]
pub struct Unsubmitted {
    cell: TaskCell,
    submission: Option<Box<Submission>>,
}

impl Unsubmitted {
    /// Returns `None` for a chunk of a map.
    pub(super) fn new(submission: Submission, shared: &Arc<Shared>) -> Option<Self> {
        let Target::Task(record) = &submission.target else { return None };
        let cell = TaskCell::new(record.clone(), shared);
        Some(Self { cell, submission: Some(Box::new(submission)) })
    }
}
