//! The kinds of outcomes.

use crate::payload::Outcome;

/// The kind of a task's outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutcomeKind {
    Value,
    /// Any error other than a cancellation.
    Failure,
    Cancelled,
}

impl OutcomeKind {
    pub(super) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Ok(_) => Self::Value,
            Err(error) if error.is_cancelled() => Self::Cancelled,
            Err(_) => Self::Failure,
        }
    }
}
