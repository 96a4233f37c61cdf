//! The handle of a task on a cluster.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_codec::{chain, decode};
use brigade_pool::{TaskError, TaskState};
use serde::de::DeserializeOwned;

use super::abort_on_drop::ClusterAbortOnDrop;
use super::cell::{Callback, Kind, Outcome, TaskCell};
use super::failure;
use super::shared::{Command, Shared};

/// Time that a cancellation waits for the server.
const CANCEL_PATIENCE: Duration = Duration::from_secs(5);

/// The handle of a task on a cluster. Dropping it does not stop the task; only the result is
/// dropped.
///
/// It has the methods of a pool's [`Handle`](brigade_pool::Handle), and is a [`Future`] that works
/// with any runtime. If its [`Cluster`](crate::Cluster) is dropped first, the outcome is
/// [`Disconnected`](brigade_pool::TaskErrorKind::Disconnected).
#[must_use = "dropping the handle loses the task's result; drop it explicitly if that is intended"]
pub struct ClusterHandle<R> {
    cell: Arc<TaskCell>,
    shared: Arc<Shared>,
    result: PhantomData<fn() -> R>,
}

impl<R> ClusterHandle<R> {
    pub(super) fn new(cell: Arc<TaskCell>, shared: Arc<Shared>) -> Self {
        Self { cell, shared, result: PhantomData }
    }

    /// Returns the label that the task was submitted with.
    pub fn label(&self) -> Option<&str> {
        self.cell.label.as_deref()
    }

    /// Returns `true` if the outcome has arrived, even if it has been taken since. A cancellation
    /// is an outcome.
    pub fn is_done(&self) -> bool {
        self.cell.kind().is_some() || self.shared.is_forked()
    }

    /// Returns the current progress of the task. It is [`Queued`](TaskState::Queued) until it has
    /// an outcome, because nodes do not report when they start a task.
    pub fn state(&self) -> TaskState {
        match self.cell.kind() {
            None => TaskState::Queued,
            Some(Kind::Cancelled) => TaskState::Cancelled,
            Some(Kind::Finished | Kind::Killed) => TaskState::Done,
        }
    }

    /// Cancels the task. Returns `true` if that is its outcome, and `false` if it had another one
    /// before.
    ///
    /// The cancellation is recorded like any outcome, so it races exactly: whatever is recorded
    /// first counts, and nodes drop the task. A function that runs is not interrupted, but its
    /// result is dropped.
    ///
    /// Blocks until the server has answered, for at most 5 s. After that it returns `false`, and
    /// the cancellation is recorded as soon as the server is back, unless the task has an outcome
    /// by then.
    pub fn cancel(&self) -> bool {
        self.end(false);
        self.wait_for_end() == Some(Kind::Cancelled)
    }

    /// Ends the task like [`cancel`](Self::cancel), even if it is running: its worker is then
    /// killed and replaced. The outcome is [`Killed`](brigade_pool::TaskErrorKind::Killed).
    pub fn kill(&self) -> bool {
        self.end(true);
        self.wait_for_end() == Some(Kind::Killed)
    }

    /// Asks to [`kill`](Self::kill) the task, without waiting for the answer: it arrives as the
    /// outcome.
    pub fn request_kill(&self) {
        self.end(true);
    }

    /// Returns the handle in a wrapper that kills the task when it is dropped, for futures whose
    /// result nobody needs once they are dropped, for example by a timeout.
    pub fn abort_on_drop(self) -> ClusterAbortOnDrop<R> {
        ClusterAbortOnDrop::new(self)
    }

    /// Asks the driver to end the task. Does not block.
    pub(super) fn end(&self, kill: bool) {
        if !self.is_done() {
            self.shared.send(Command::End { ticket: self.cell.ticket, kill });
        }
    }

    /// Returns a second handle; the caller uses one of them.
    pub(super) fn duplicate(&self) -> Self {
        Self::new(Arc::clone(&self.cell), Arc::clone(&self.shared))
    }

    fn wait_for_end(&self) -> Option<Kind> {
        if !self.shared.is_forked() {
            self.cell.wait(Instant::now().checked_add(CANCEL_PATIENCE));
        }
        self.cell.kind()
    }

    fn forked(&self) -> TaskError {
        failure::forked(self.cell.label.clone())
    }
}

impl<R: DeserializeOwned + 'static> ClusterHandle<R> {
    /// Blocks until the outcome arrives and returns it.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    ///
    /// # Panics
    /// If the outcome was taken before, by `wait_timeout`, by `try_get`, or as a future.
    pub fn wait(self) -> Result<R, TaskError> {
        if self.shared.is_forked() {
            return Err(self.forked());
        }
        self.cell.wait(None);
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let outcome = self.cell.take().expect("the outcome was already taken");
        into_result(outcome, self.cell.label.clone())
    }

    /// Blocks until the outcome arrives or `timeout` elapses. The task continues if it takes
    /// longer.
    ///
    /// Returns `None` on a timeout, or if the outcome was taken before.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        if self.shared.is_forked() {
            return Some(Err(self.forked()));
        }
        // A timeout beyond the range of the clock counts as no timeout.
        self.cell.wait(Instant::now().checked_add(timeout));
        self.try_get()
    }

    /// Returns the outcome if it has arrived and was not taken before. Does not block.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    pub fn try_get(&mut self) -> Option<Result<R, TaskError>> {
        let outcome = self.cell.take()?;
        Some(into_result(outcome, self.cell.label.clone()))
    }

    /// Calls `callback` with the outcome as soon as it arrives, or immediately if it already has.
    ///
    /// Each callback of a handle is called once, in the order of registration, with its own copy of
    /// the value. Callbacks of all handles run one after the other on a dedicated thread. One that
    /// panics is reported as a `tracing` event and does not affect the others.
    ///
    /// # Panics
    /// If the outcome was already taken, or, as `std::thread::spawn` does, if the system cannot
    /// start the thread for the cluster's first callback.
    pub fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) {
        let label = self.cell.label.clone();
        let run = Box::new(move |outcome| callback(into_result(outcome, label)));
        let queue = match self.shared.callbacks.sender() {
            Ok(queue) => queue,
            Err(error) => panic!("failed to start the thread for callbacks: {error}"),
        };
        let is_registered = self.cell.on_done(Callback { run, queue });
        assert!(is_registered, "the outcome was already taken");
    }
}

/// Decodes an outcome.
pub(super) fn into_result<R: DeserializeOwned + 'static>(
    outcome: Outcome,
    label: Option<Arc<str>>,
) -> Result<R, TaskError> {
    decode(&outcome?).map_err(|error| {
        failure::codec(format!("the result could not be decoded: {}", chain(&error)), label)
    })
}

impl<R: DeserializeOwned + 'static> Future for ClusterHandle<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.shared.is_forked() {
            return Poll::Ready(Err(self.forked()));
        }
        let label = self.cell.label.clone();
        self.cell.poll(context).map(|outcome| into_result(outcome, label))
    }
}

impl<R> fmt::Debug for ClusterHandle<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClusterHandle")
            .field("ticket", &self.cell.ticket)
            .field("label", &self.label())
            .field("state", &self.state())
            .field("result", &format_args!("{}", std::any::type_name::<R>()))
            .finish_non_exhaustive()
    }
}
