//! The client's record of a single task, shared by its handle and the driver.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use brigade_codec::CodecError;
use brigade_sys::catch_panic::catch_panic;
use brigade_task::backend::sync::AtomicBool;
use brigade_task::backend::{
    self, Backend, Callbacks, OutcomeKind, Plain, Promise, Wait, park_for,
};
use brigade_task::{SubmitErrorKind, TaskError};
use brigade_wire::TaskId;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tracing::error;

use super::machine::Ticket;
use super::shared::{Command, Shared};
use super::submission::{Submission, Target};
use super::task::closed;

/// Time that a cancellation waits for the server.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// A task: the promise of its outcome.
#[derive(Debug, Clone)]
pub struct TaskCell(Promise<Facts, Plain<Encoded>>);

/// The facts that are known of a task from the start.
#[derive(Debug)]
pub struct Facts {
    id: TaskId,
    ticket: Ticket,
    label: Option<Arc<str>>,
    shared: Arc<Shared>,
    ended: AtomicBool,
}

/// The encoded value of a task.
#[derive(Debug, Clone)]
pub struct Encoded(Bytes);

impl TaskCell {
    pub(super) fn new(shared: &Arc<Shared>, ticket: Ticket, label: Option<Arc<str>>) -> Self {
        let facts = Facts {
            id: TaskId::new(ticket + 1),
            ticket,
            label,
            shared: Arc::clone(shared),
            ended: AtomicBool::new(false),
        };
        Self(Promise::new(facts, Plain::default()))
    }

    pub(super) fn label(&self) -> Option<Arc<str>> {
        self.0.label.clone()
    }

    /// Stores the outcome and wakes everybody who waits for it. A second one is ignored.
    pub(super) fn complete(&self, outcome: Result<Bytes, TaskError>) {
        if !self.0.is_pending() {
            return;
        }
        let before = self.0.complete(outcome.map(Encoded), |(), _| {});
        if let Some(waiters) = before.and_then(Plain::into_waiters) {
            let wakeups = waiters.notify();
            self.0.shared.run_wakers(wakeups.waker.into_iter().chain(wakeups.wakers).collect());
        }
    }

    /// Asks the driver to end the task. Does not block.
    pub(super) fn end(&self, kill: bool) {
        self.0.shared.send(Command::End { ticket: self.0.ticket, kill });
    }

    /// Returns the kind of the outcome, for which it waits for some time.
    fn wait_for_end(&self) -> Option<OutcomeKind> {
        park_for(&self.0, Instant::now().checked_add(CANCEL_PATIENCE));
        self.0.outcome_kind()
    }
}

impl backend::Task for TaskCell {
    type Backend = Shared;

    fn backend(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    fn promise(&self) -> &Promise<Facts, Plain<Encoded>> {
        &self.0
    }

    fn promise_mut(&mut self) -> &mut Promise<Facts, Plain<Encoded>> {
        &mut self.0
    }

    fn label(&self) -> Option<&Arc<str>> {
        self.0.label.as_ref()
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

impl backend::Facts for Facts {
    fn id(&self) -> TaskId {
        self.id
    }

    fn ended(&self) -> &AtomicBool {
        &self.ended
    }
}

impl backend::Value for Encoded {
    fn share(&mut self) -> Self {
        self.clone()
    }

    fn decode<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        brigade_codec::decode(&self.0)
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
        let shared = &unsubmitted.cell.0.shared;
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

    fn run_wakers(&self, wakers: Vec<Waker>) {
        for waker in wakers {
            if let Err(message) = catch_panic(|| waker.wake()) {
                error!(message, "waker panicked");
            }
        }
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
    pub(super) fn new(submission: Submission) -> Option<Self> {
        let Target::Task(cell) = &submission.target else { return None };
        Some(Self { cell: cell.clone(), submission: Some(Box::new(submission)) })
    }
}
