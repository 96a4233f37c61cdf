//! Errors of submissions.

use std::fmt;

use super::{FORKED, TaskError, TaskErrorKind};

/// The reason why a task was refused. [`into_argument`](Self::into_argument) returns its argument.
#[derive(thiserror::Error)]
#[error("{kind}")]
pub struct SubmitError<A> {
    kind: SubmitErrorKind,
    argument: A,
}

/// The kinds of [`SubmitError`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitErrorKind {
    /// The queue is full, and the submission was not to wait.
    #[error("the pool's queue is full")]
    Full,
    /// The queue stayed full until the timeout.
    #[error("the pool's queue stayed full until the timeout")]
    TimedOut,
    /// The pool has been shut down.
    #[error("the pool has been shut down")]
    PoolClosed,
    /// The pool cannot start workers anymore.
    #[error("the pool is broken: {reason}")]
    PoolBroken {
        /// Reason for the failure.
        reason: String,
    },
    /// The argument could not be encoded.
    #[error("the argument cannot be encoded: {message}")]
    Codec {
        /// Description of the failure, with the name of the type.
        message: String,
    },
    /// A worker could not find the function.
    #[error("the function cannot run in a worker: {message}")]
    Function {
        /// Reason for the failure.
        message: String,
    },
    /// The pool has not what the task needs.
    #[error("the task can never run: {message}")]
    Needs {
        /// Description of what is missing.
        message: String,
    },
    /// This process is a fork of the one that built the pool.
    #[error("the pool belongs to another process: {FORKED}")]
    Forked,
    /// The client of a cluster was closed, or cannot reach its server.
    #[error("the cluster cannot be used: {reason}")]
    Disconnected {
        /// Description of the failure.
        reason: String,
    },
    /// The argument is too large for the cluster.
    #[error("the encoded argument has {size} bytes, and the limit is {limit}")]
    TooLarge {
        /// Number of bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl<A> SubmitError<A> {
    /// Returns the refusal of a task with this argument.
    #[doc(hidden)]
    pub fn new(kind: SubmitErrorKind, argument: A) -> Self {
        Self { kind, argument }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> &SubmitErrorKind {
        &self.kind
    }

    /// Returns the argument, unchanged.
    pub fn into_argument(self) -> A {
        self.argument
    }

    /// Returns `true` if a later attempt may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self.kind, SubmitErrorKind::Full | SubmitErrorKind::TimedOut)
    }

    /// Converts the failure to the outcome of a task, for iterators that yield outcomes.
    #[doc(hidden)]
    pub fn into_task_error(self) -> TaskError {
        TaskError::new(match self.kind {
            SubmitErrorKind::PoolBroken { reason } => TaskErrorKind::PoolBroken { reason },
            SubmitErrorKind::Codec { message } => TaskErrorKind::Codec { message },
            SubmitErrorKind::Function { message } => TaskErrorKind::Function { message },
            SubmitErrorKind::Forked => TaskErrorKind::Forked,
            SubmitErrorKind::PoolClosed => TaskErrorKind::PoolClosed,
            SubmitErrorKind::Disconnected { reason } => TaskErrorKind::Disconnected { reason },
            SubmitErrorKind::Needs { message } => TaskErrorKind::Needs { message },
            large @ SubmitErrorKind::TooLarge { .. } => {
                TaskErrorKind::Codec { message: large.to_string() }
            }
            // The pool is still open; the task was given up before it started.
            SubmitErrorKind::Full | SubmitErrorKind::TimedOut => TaskErrorKind::Cancelled,
        })
    }
}

impl<A> fmt::Debug for SubmitError<A> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.kind, out)
    }
}

brigade_sys::debug_as_text!(SubmitErrorKind);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_is_not_reported_as_a_closed_pool() {
        let kind = |kind| SubmitError::new(kind, ()).into_task_error().kind().clone();
        assert_eq!(kind(SubmitErrorKind::PoolClosed), TaskErrorKind::PoolClosed);
        for full in [SubmitErrorKind::Full, SubmitErrorKind::TimedOut] {
            assert_eq!(kind(full), TaskErrorKind::Cancelled);
        }
    }
}
