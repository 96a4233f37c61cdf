//! Failures that the client itself reports.

use std::sync::Arc;

use brigade_task::{SubmitError, SubmitErrorKind, TaskError, TaskErrorKind};

/// Returns the outcome of a task that this client has ended.
pub(super) fn ended(kill: bool, label: Option<Arc<str>>) -> TaskError {
    new(if kill { TaskErrorKind::Killed } else { TaskErrorKind::Cancelled }, label)
}

/// Returns the outcome of a task whose value or input cannot be read.
pub(super) fn codec(message: String, label: Option<Arc<str>>) -> TaskError {
    new(TaskErrorKind::Codec { message }, label)
}

/// Returns the outcome of a task that the client knows nothing of anymore.
pub(super) fn disconnected(reason: &str, label: Option<Arc<str>>) -> TaskError {
    new(TaskErrorKind::Disconnected { reason: reason.to_owned() }, label)
}

/// Returns the outcome of a task of which nothing is left on the server.
pub(super) fn lost(reason: &str, label: Option<Arc<str>>) -> TaskError {
    new(TaskErrorKind::Lost { reason: reason.to_owned() }, label)
}

/// Returns the reason for which a task was not submitted.
pub(super) fn not_submitted(reason: &str) -> SubmitErrorKind {
    SubmitErrorKind::Disconnected { reason: reason.to_owned() }
}

pub(super) fn closed() -> SubmitErrorKind {
    not_submitted("the cluster was closed")
}

fn new(kind: TaskErrorKind, label: Option<Arc<str>>) -> TaskError {
    TaskError::of(kind, label.as_deref(), 1, None)
}

/// Returns the outcome of a task whose function is not the right one.
pub(super) fn function(message: String, label: Option<Arc<str>>) -> TaskError {
    new(TaskErrorKind::Function { message }, label)
}

/// Returns the outcome of an input that could not be submitted.
pub(super) fn not_sent(kind: SubmitErrorKind, label: Option<Arc<str>>) -> TaskError {
    new(SubmitError::new(kind, ()).into_task_error().kind().clone(), label)
}
