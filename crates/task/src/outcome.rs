//! The outcomes of tasks, encoded as they arrive.

use std::fmt;

use brigade_wire::codec::CodecError;
use serde::de::DeserializeOwned;

use crate::bytes::Bytes;
use crate::error::{TaskError, TaskErrorKind};

/// The encoded value of a task, or its failure.
pub type Outcome<V> = Result<V, TaskError>;

/// An encoded value.
pub trait Value: From<Bytes> + fmt::Debug + Send + 'static {
    /// Returns the bytes of a value that is nothing else.
    ///
    /// # Errors
    /// Returns any other value.
    fn into_bytes(self) -> Result<Bytes, Self>;
    /// Returns the same value again, without a copy.
    #[must_use]
    fn share(&mut self) -> Self;
    /// Decodes the value.
    ///
    /// # Errors
    /// If the bytes are not an `R`.
    fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError>;
}

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
