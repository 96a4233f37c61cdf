//! The kinds of outcomes.

use crate::error::TaskError;

/// The kind of a task's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeKind {
    Value,
    /// Any error other than a cancellation.
    Failure,
    Cancelled,
}

impl OutcomeKind {
    /// Returns the kind of a failure.
    pub(super) fn of(error: &TaskError) -> Self {
        if error.is_cancelled() { Self::Cancelled } else { Self::Failure }
    }
}
