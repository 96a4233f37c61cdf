//! Everything that can go wrong, told so that the reader knows which task, which process and what to do.

mod last_line;
mod submit;

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::process::Exit;
use brigade_wire::{Attempt, TaskId};

pub(crate) use last_line::last_line;
pub use submit::{SubmitError, SubmitErrorKind};

/// Why a task has no value. What kind of failure it is says [`kind`](Self::kind).
#[derive(Clone)]
pub struct TaskError {
    inner: Box<TaskFailure>,
}

#[derive(Clone)]
struct TaskFailure {
    kind: TaskErrorKind,
    task: Option<TaskId>,
    attempt: Attempt,
    label: Option<Arc<str>>,
    elapsed: Option<Duration>,
    quarantined: bool,
    in_the_queue: bool,
    /// The pool killed the worker, as it broke the protocol.
    broke_protocol: bool,
}

/// The kinds of [`TaskError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskErrorKind {
    /// The function panicked; the worker lives on.
    Panicked {
        /// The panic's message.
        message: String,
        /// `file:line:column`, or `unknown`.
        location: String,
        /// The worker's stack at the panic; empty when `RUST_BACKTRACE=0`.
        backtrace: String,
    },
    /// The worker's process ended while it ran the task.
    WorkerDied {
        /// The process that died.
        pid: u32,
        /// How it ended.
        exit: Exit,
        /// The last 4 KiB that it wrote to its standard error.
        stderr_tail: String,
    },
    /// The task ran, or waited, longer than it was allowed to.
    DeadlineExceeded {
        /// What it was allowed.
        limit: Duration,
        /// What it took until it was ended.
        elapsed: Duration,
    },
    /// The task was taken back before it began.
    Cancelled,
    /// The pool killed the task's worker: on demand, or because the pool was shut down.
    Killed,
    /// The argument or the result could not be carried over.
    Codec {
        /// What failed, with the name of the type.
        message: String,
    },
    /// The worker knows no such function.
    Function {
        /// Why, with the names that it knows.
        message: String,
    },
    /// No worker can be had any more.
    PoolBroken {
        /// Why.
        reason: String,
    },
    /// The pool had been shut down.
    PoolClosed,
    /// This process is a fork of the one that built the pool; that one has the task.
    Forked,
}

impl TaskError {
    pub(crate) fn new(kind: TaskErrorKind) -> Self {
        let failure = TaskFailure {
            kind,
            task: None,
            attempt: Attempt::first(),
            label: None,
            elapsed: None,
            quarantined: false,
            in_the_queue: false,
            broke_protocol: false,
        };
        Self { inner: Box::new(failure) }
    }

    pub(crate) fn of_task(
        mut self,
        task: TaskId,
        attempt: Attempt,
        label: Option<Arc<str>>,
    ) -> Self {
        self.inner.task = Some(task);
        self.inner.attempt = attempt;
        self.inner.label = label;
        self
    }

    /// The same failure for an item of the task that failed.
    pub(crate) fn of_item(mut self, task: TaskId) -> Self {
        self.inner.task = Some(task);
        self
    }

    pub(crate) fn after(mut self, elapsed: Option<Duration>) -> Self {
        self.inner.elapsed = elapsed;
        self
    }

    pub(crate) fn quarantined(mut self) -> Self {
        self.inner.quarantined = true;
        self
    }

    pub(crate) fn broke_protocol(mut self) -> Self {
        self.inner.broke_protocol = true;
        self
    }

    pub(crate) fn in_the_queue(mut self) -> Self {
        self.inner.in_the_queue = true;
        self
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> TaskErrorKind {
        self.inner.kind.clone()
    }

    /// The task that failed; `None` if it never became one.
    pub fn task(&self) -> Option<TaskId> {
        self.inner.task
    }

    /// The attempt that failed, counted from 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt.get()
    }

    /// The label that the task was given.
    pub fn label(&self) -> Option<&str> {
        self.inner.label.as_deref()
    }

    /// How long the task had been running, where a process died under it.
    pub fn elapsed(&self) -> Option<Duration> {
        self.inner.elapsed
    }

    /// Whether the task was taken back before it began.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::Cancelled)
    }

    /// Whether the function panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::Panicked { .. })
    }

    /// Whether the worker's process ended by itself, or by somebody else's signal, or because it broke the protocol.
    pub fn is_worker_death(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::WorkerDied { .. })
    }

    /// Whether a deadline ended the task.
    pub fn is_deadline(&self) -> bool {
        matches!(self.inner.kind, TaskErrorKind::DeadlineExceeded { .. })
    }

    /// Whether it was the deadline for waiting: the task has never begun.
    pub fn is_queue_deadline(&self) -> bool {
        self.inner.in_the_queue
    }

    /// Whether the task had retries left, and was given up because as many workers had died under it as the pool's
    /// [`quarantine_after`](crate::Builder::quarantine_after) says.
    pub fn is_quarantined(&self) -> bool {
        self.inner.quarantined
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.inner.task {
            Some(task) => write!(out, "{task}")?,
            None => out.write_str("a task")?,
        }
        if let Some(label) = &self.inner.label {
            write!(out, " ({label})")?;
        }
        if self.inner.attempt != Attempt::first() {
            write!(out, ", attempt {}", self.inner.attempt.get())?;
        }
        match &self.inner.kind {
            TaskErrorKind::Panicked { message, location, .. } => {
                write!(out, " panicked at {location}: {message}")
            }
            TaskErrorKind::WorkerDied { pid, exit, stderr_tail } => {
                write!(out, " lost its worker (pid {pid}): ")?;
                if self.inner.broke_protocol {
                    out.write_str("the pool killed it, as what it sent made no sense")?;
                } else {
                    write!(out, "{exit}")?;
                    if let Some(text) = brigade_worker::exit_code::describe_exit(*exit) {
                        write!(out, ", {text}")?;
                    }
                }
                if let Some(elapsed) = self.inner.elapsed {
                    write!(out, ", after {elapsed:.3?}")?;
                }
                if let Some(line) = last_line(stderr_tail) {
                    write!(out, "; its last line on stderr: {line}")?;
                }
                if self.inner.quarantined {
                    out.write_str("; quarantined, as too many workers have died under it")?;
                }
                Ok(())
            }
            TaskErrorKind::DeadlineExceeded { limit, elapsed } if self.inner.in_the_queue => {
                write!(out, " had not begun after {elapsed:.3?}, and may wait {limit:?}")
            }
            TaskErrorKind::DeadlineExceeded { limit, elapsed } => {
                write!(out, " exceeded its deadline of {limit:?} (ended after {elapsed:.3?})")
            }
            TaskErrorKind::Cancelled => out.write_str(" was cancelled before it began"),
            TaskErrorKind::Killed => {
                out.write_str(" was killed")?;
                match self.inner.elapsed {
                    Some(elapsed) => write!(out, " after {elapsed:.3?}"),
                    None => Ok(()),
                }
            }
            TaskErrorKind::Codec { message } => {
                write!(out, " could not be carried over: {message}")
            }
            TaskErrorKind::Function { message } => {
                write!(out, " called a function that its worker does not know: {message}")
            }
            TaskErrorKind::PoolBroken { reason } => {
                write!(out, " cannot run, the pool is broken: {reason}")
            }
            TaskErrorKind::PoolClosed => out.write_str(" cannot run, the pool has been shut down"),
            TaskErrorKind::Forked => write!(out, " belongs to another process: {FORKED}"),
        }
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TaskError")
            .field("kind", &self.inner.kind)
            .field("task", &self.inner.task)
            .field("attempt", &self.inner.attempt)
            .field("label", &self.inner.label)
            .field("elapsed", &self.inner.elapsed)
            .finish()
    }
}

impl Error for TaskError {}

/// No further task has ended in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{pending} (of {total}) tasks have not ended in time")]
#[non_exhaustive]
pub struct TimedOut {
    /// Tasks that have not ended.
    pub pending: usize,
    /// Tasks that are waited for together, those that have ended included.
    pub total: usize,
}

/// Why a pool could not be built, started or ended well.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A builder's setting makes no sense.
    #[error("{field}: {problem}")]
    Configuration {
        /// The builder's method.
        field: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The executable is its own worker, and would not know it.
    #[error(
        "brigade::init() has not run in this process: call it in the first line of main \
         (in tests, put brigade::init_for_tests!() into the test file)"
    )]
    NotInitialised,
    /// This very process was started as a worker.
    #[error(
        "this process was started as a worker but did not call brigade::init(); call it in the first line of main"
    )]
    WorkerWithoutInit,
    /// This process is a worker of a pool in a worker, and so on; at some depth there must be an end.
    #[error(
        "pools are nested {depth} deep here and the limit is {limit}: a task that builds a pool whose tasks build pools \
         has no end; let one pool do the work, or build the inner pools in the main program"
    )]
    NestedTooDeep {
        /// How many pools this process is a worker in, each inside the one before.
        depth: u32,
        /// The most that is allowed.
        limit: u32,
    },
    /// A thread or a descriptor of the pool itself could not be made.
    #[error("failed to {operation}")]
    System {
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// Some workers can be had, but not all that were asked for.
    #[error("not every worker could be started: {reason}")]
    Start {
        /// Why.
        reason: String,
    },
    /// No worker can be had.
    #[error("the pool is broken: {reason}")]
    Broken {
        /// Why.
        reason: String,
    },
    /// The pool has ended, and workers that could not be killed are left behind: this process has other rights than when it
    /// started them.
    #[error(
        "workers could not be killed and were left behind: the processes {pids:?}; end them by hand, and give up rights before the pool is built"
    )]
    LeftBehind {
        /// The processes.
        pids: Vec<u32>,
    },
    /// The pool has been shut down.
    #[error("the pool has been shut down")]
    Closed,
    /// This process is a fork of the one that built the pool.
    #[error("the pool belongs to another process: {FORKED}")]
    Forked,
}

/// Why, and what to do.
const FORKED: &str =
    "this one is a fork of the process that built the pool; build a pool after the fork";

impl PoolError {
    pub(crate) fn system(operation: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { operation, source: Arc::new(source) }
    }
}
