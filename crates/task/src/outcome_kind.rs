//! The kinds of outcomes.

use crate::error::{TaskError, TaskErrorKind};

/// The kind of a task's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutcomeKind {
    /// The function returned a value.
    Value,
    /// Any error other than those below.
    Failure,
    /// The task was cancelled before it started.
    Cancelled,
    /// The task was killed.
    Killed,
}

impl OutcomeKind {
    /// Returns the kind of a failure.
    pub fn of(error: &TaskError) -> Self {
        match error.kind() {
            TaskErrorKind::Cancelled => Self::Cancelled,
            TaskErrorKind::Killed => Self::Killed,
            _ => Self::Failure,
        }
    }

    /// Returns `true` for a failure other than a cancellation.
    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Self::Failure | Self::Killed)
    }
}
