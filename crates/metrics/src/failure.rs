//! Failures of tasks.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

/// The kinds of failures, named like those of the pool's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The function panicked.
    Panicked,
    /// The worker died while it was running the task.
    WorkerDied,
    /// The task exceeded its deadline while it was running.
    Deadline,
    /// The task was not started within its queue deadline.
    QueueDeadline,
    /// The task exceeded a limit on a resource.
    Limit,
    /// The task made a system call that its sandbox forbids.
    Denied,
    /// The task's worker was killed, on request or because of a shutdown.
    Killed,
    /// The argument or the result could not be serialized or deserialized.
    Codec,
    /// The worker does not know the function.
    Function,
    /// The pool could not start workers anymore.
    PoolBroken,
    /// The command exited with a status other than 0. For jobs of the runner.
    Exited,
    /// The command could not be started. For jobs of the runner.
    NotStarted,
}

impl FailureKind {
    /// Returns the name in `snake_case`, as in the serialized form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Panicked => "panicked",
            Self::WorkerDied => "worker_died",
            Self::Deadline => "deadline",
            Self::QueueDeadline => "queue_deadline",
            Self::Limit => "limit",
            Self::Denied => "denied",
            Self::Killed => "killed",
            Self::Codec => "codec",
            Self::Function => "function",
            Self::PoolBroken => "pool_broken",
            Self::Exited => "exited",
            Self::NotStarted => "not_started",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

/// A task that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// Number of the task.
    pub task: u64,
    /// Label of the task, or empty.
    pub label: String,
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Text of the error, at most 200 bytes.
    pub text: String,
    /// Worker that ran the task, in the form `3.1` (slot and generation), or `3` for a slot of a
    /// runner; empty if none did.
    pub worker: String,
    /// Time since the failure.
    #[serde(with = "seconds")]
    pub ago: Duration,
}

impl Failure {
    /// Creates a failure of a task without a label or a worker, a moment ago.
    pub fn new(task: u64, kind: FailureKind, text: impl Into<String>) -> Self {
        Self {
            task,
            label: String::new(),
            kind,
            text: text.into(),
            worker: String::new(),
            ago: Duration::ZERO,
        }
    }
}
