//! Errors of tasks and submissions. Each says which task and which process failed, and what to do.

mod display;
mod portable;
mod submit;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use brigade_crash::{CrashReport, Stack};
use brigade_sandbox::Limit;
use brigade_sys::process::Exit;
use brigade_wire::{Attempt, TaskId};

pub use submit::{SubmitError, SubmitErrorKind};

/// The reason why a task returned no value; see [`kind`](Self::kind).
#[derive(Clone)]
pub struct TaskError {
    inner: Box<TaskFailure>,
}

/// The content of a [`TaskError`], which is boxed because few tasks fail.
#[derive(Clone)]
struct TaskFailure {
    kind: TaskErrorKind,
    task: Option<TaskId>,
    /// Position of the input in its map.
    index: Option<usize>,
    attempt: Attempt,
    label: Option<Arc<str>>,
    circumstances: Circumstances,
}

/// The circumstances of a failure, which its text mentions.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct Circumstances {
    /// The time that the task had been running when its process died.
    pub elapsed: Option<Duration>,
    /// The task was given up because it had killed too many workers.
    pub quarantined: bool,
    /// The task exceeded its deadline before it started.
    pub in_the_queue: bool,
    /// The pool killed the worker because it broke the protocol.
    pub broke_protocol: bool,
    /// The report of the worker's crash.
    pub crash: Option<CrashReport>,
    /// The stack of the task before its worker was killed.
    pub stack: Option<Stack>,
}

/// The kinds of [`TaskError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskErrorKind {
    /// The function panicked. The worker continues to run.
    Panicked {
        /// The panic message.
        message: String,
        /// `file:line:column`, or `unknown`.
        location: String,
        /// The worker's stack at the panic; empty if `RUST_BACKTRACE=0`.
        backtrace: String,
    },
    /// The worker process ended while it was running the task.
    WorkerDied {
        /// Process id of the worker.
        pid: u32,
        /// Exit status of the worker.
        exit: Exit,
        /// The last 16 KiB that the worker wrote to its standard error.
        stderr_tail: String,
    },
    /// The task exceeded its deadline, either while running or in the queue.
    DeadlineExceeded {
        /// The deadline.
        limit: Duration,
        /// Time that the task had taken when it was ended.
        elapsed: Duration,
    },
    /// The task exceeded a limit on a resource, and ended with its worker.
    LimitExceeded {
        /// The limit.
        limit: Limit,
        /// The amount that the task had used, if it is known.
        used: Option<Limit>,
    },
    /// The task tried what the sandbox of its pool forbids, and ended with its worker.
    Denied {
        /// Name of the system call.
        call: &'static str,
        /// Process id of the worker.
        pid: u32,
    },
    /// The task was cancelled before it started.
    Cancelled,
    /// The pool killed the task's worker, on request or because of a shutdown.
    Killed,
    /// The argument or the result could not be serialized or deserialized.
    Codec {
        /// Description of the failure, with the name of the type.
        message: String,
    },
    /// The worker does not know the function.
    Function {
        /// Description of the failure, with the names that the worker knows.
        message: String,
    },
    /// The task needs a resource of which its pool never has enough.
    Needs {
        /// Description of what is missing.
        message: String,
    },
    /// The pool cannot start workers anymore.
    PoolBroken {
        /// Reason for the failure.
        reason: String,
    },
    /// The pool had been shut down.
    PoolClosed,
    /// This process is a fork of the one that built the pool; the task belongs to the original.
    Forked,
    /// The task was given up because it had ended too many workers or nodes of a cluster. It is
    /// among the dead letters.
    GivenUp {
        /// Number of attempts that ended with the death of their worker or node.
        deaths: u32,
        /// Description of the last ones.
        reason: String,
    },
    /// The server of a cluster has neither the task nor an outcome of it anymore. The task may have
    /// run.
    Lost {
        /// The most likely cause.
        reason: String,
    },
    /// The client of a cluster was closed, or lost its server, before the outcome arrived.
    Disconnected {
        /// Description of the failure.
        reason: String,
    },
}

impl TaskErrorKind {
    /// Returns the name of the kind in `snake_case`, as metrics and spans have it.
    #[doc(hidden)]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Panicked { .. } => "panicked",
            Self::WorkerDied { .. } => "worker_died",
            Self::DeadlineExceeded { .. } => "deadline",
            Self::LimitExceeded { .. } => "limit",
            Self::Denied { .. } => "denied",
            Self::Cancelled => "cancelled",
            Self::Killed => "killed",
            Self::Codec { .. } => "codec",
            Self::Function { .. } => "function",
            Self::Needs { .. } => "needs",
            Self::PoolBroken { .. } => "pool_broken",
            Self::PoolClosed => "pool_closed",
            Self::Forked => "forked",
            Self::GivenUp { .. } => "given_up",
            Self::Lost { .. } => "lost",
            Self::Disconnected { .. } => "disconnected",
        }
    }
}

impl TaskError {
    /// Returns the error of a task that did not run in a pool of this process.
    #[doc(hidden)]
    pub fn of(
        kind: TaskErrorKind,
        label: Option<&str>,
        attempt: u32,
        elapsed: Option<Duration>,
    ) -> Self {
        let mut error = Self::new(kind);
        error.inner.label = label.map(Arc::from);
        error.inner.attempt = Attempt::new(attempt);
        error.inner.circumstances.elapsed = elapsed;
        error
    }

    /// Returns an error that says nothing of its task.
    #[doc(hidden)]
    pub fn new(kind: TaskErrorKind) -> Self {
        let failure = TaskFailure {
            kind,
            task: None,
            index: None,
            attempt: Attempt::first(),
            label: None,
            circumstances: Circumstances::default(),
        };
        Self { inner: Box::new(failure) }
    }

    /// Returns the same failure of this attempt at a task.
    #[doc(hidden)]
    #[must_use]
    pub fn of_task(mut self, task: TaskId, attempt: Attempt, label: Option<Arc<str>>) -> Self {
        self.inner.task = Some(task);
        self.inner.attempt = attempt;
        self.inner.label = label;
        self
    }

    /// Returns the same failure for one item of the task.
    #[doc(hidden)]
    #[must_use]
    pub fn of_item(mut self, task: TaskId) -> Self {
        self.inner.task = Some(task);
        self
    }

    /// Returns the same failure of the input at this position of a map.
    #[doc(hidden)]
    #[must_use]
    pub fn at(mut self, position: u64) -> Self {
        self.inner.index = usize::try_from(position).ok();
        self
    }

    /// Returns the same failure under these circumstances.
    #[doc(hidden)]
    #[must_use]
    pub fn under(mut self, circumstances: Circumstances) -> Self {
        self.inner.circumstances = circumstances;
        self
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> &TaskErrorKind {
        &self.inner.kind
    }

    /// Returns the id of the failed task, or `None` if it was never submitted.
    pub fn task(&self) -> Option<TaskId> {
        self.inner.task
    }

    /// Returns the position of the input in its map, counted from 0, or `None` if the task is not
    /// an item of a map.
    ///
    /// To learn the position of a value, or the input itself, see
    /// [`indexed`](crate::Map::indexed) and [`with_inputs`](crate::Map::with_inputs).
    pub fn index(&self) -> Option<usize> {
        self.inner.index
    }

    /// Returns the number of the failed attempt, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt.get()
    }

    /// Returns the label of the task.
    pub fn label(&self) -> Option<&str> {
        self.inner.label.as_deref()
    }

    /// Returns how long the task had been running when its process died.
    pub fn elapsed(&self) -> Option<Duration> {
        self.inner.circumstances.elapsed
    }

    /// Returns the report of the crash that ended the worker: the signal, its cause, and the stack.
    pub fn crash(&self) -> Option<&CrashReport> {
        self.inner.circumstances.crash.as_ref()
    }

    /// Returns where the task was: when its worker crashed, or when a deadline or a kill ended it.
    /// `None` if the worker did not answer within five milliseconds before it was killed.
    pub fn stack(&self) -> Option<&Stack> {
        self.inner.circumstances.stack.as_ref().or_else(|| self.crash()?.stack())
    }

    /// Returns `true` if the task was cancelled before it started.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::Cancelled)
    }

    /// Returns `true` if the function panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::Panicked { .. })
    }

    /// Returns `true` if the worker process ended on its own, by a signal from outside the pool, or
    /// because it broke the protocol.
    pub fn is_worker_death(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::WorkerDied { .. })
    }

    /// Returns `true` if the task exceeded a deadline.
    pub fn is_deadline(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::DeadlineExceeded { .. })
    }

    /// Returns `true` if the task exceeded a limit on a resource.
    pub fn is_limit(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::LimitExceeded { .. })
    }

    /// Returns `true` if the task made a system call that the sandbox of its pool forbids.
    pub fn is_denied(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::Denied { .. })
    }

    /// Returns `true` if the task exceeded its queue deadline, which means that it never started.
    pub fn is_queue_deadline(&self) -> bool {
        self.inner.circumstances.in_the_queue
    }

    /// Returns `true` if the task had retries left but was given up because it had killed as many
    /// workers as the pool's `quarantine_after` allows.
    pub fn is_quarantined(&self) -> bool {
        self.inner.circumstances.quarantined
    }
}

impl Error for TaskError {}

/// No further task finished in time.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("timed out waiting for {pending} of {total} tasks")]
#[non_exhaustive]
pub struct TimedOut {
    /// Number of tasks that have not finished.
    pub pending: usize,
    /// Number of tasks in the group, including those that have finished.
    pub total: usize,
}

/// Explanation and remedy that complete every error about a fork.
#[doc(hidden)]
pub const FORKED: &str =
    "this one is a fork of the process that built the pool; build a pool after the fork";

impl TimedOut {
    /// Returns the error of a wait for a group of tasks.
    #[doc(hidden)]
    pub fn new(pending: usize, total: usize) -> Self {
        Self { pending, total }
    }
}

brigade_sys::debug_as_text!(TimedOut, TaskError);
