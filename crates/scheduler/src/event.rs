//! The scheduler's inputs.

#![expect(missing_docs, reason = "fields are named after their types, which have documentation")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, Revocation, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::failure::{FailedItems, Failure};
use crate::outbox::RevokeWhy;
use crate::{KillCause, Shutdown, Submission, TaskData, TaskRef};

/// An input of the scheduler. In a journal, events lack the driver's data for tasks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: TaskData", deserialize = "T: From<TaskId>"))]
pub enum Event<T> {
    /// A caller submits a task. Sent only if there is room; otherwise the caller waits.
    Submit(Submission<T>),
    /// A caller cancels a task.
    Cancel(TaskRef),
    /// A caller ends a task, even while it runs.
    Kill(TaskRef),
    /// The answer to `Action::Observe`.
    Observed {
        task: TaskRef,
        /// Boxed because it is rare and large, and events are passed by value for each task.
        seen: Box<Observation>,
    },
    /// The task that a worker runs has opened a section that must end in time.
    SectionBegun { worker: WorkerId, ring_index: u16, due: Monotonic },
    /// The answer to `Action::Revoke`.
    RevokeAnswer {
        task: TaskRef,
        worker: WorkerId,
        ring_index: u16,
        why: RevokeWhy,
        found: Revocation,
    },
    /// A worker finished a task. The driver holds the outcome.
    Finished {
        worker: WorkerId,
        task: TaskId,
        attempt: Attempt,
        run_time: Duration,
        /// `true` if the worker exceeds `max_worker_rss`, or has left threads in spite of limits.
        worn: bool,
        /// The failure after which a task, which is not a chunk, may run again.
        failure: Option<Failure>,
    },
    /// A worker finished the items of a chunk, of which some may run again, or returns some of
    /// them. The driver holds the outcomes. Boxed because it is rare and large.
    Returned(Box<Returned>),
    /// A worker skipped a revoked task.
    Skipped { worker: WorkerId, task: TaskId, attempt: Attempt },
    /// All outcomes that have arrived are handled, so an idle worker may take over tasks of others.
    Balance,
    /// Start all workers, with or without work.
    WarmUp,
    /// Set the maximum number of workers.
    Resize { workers: usize },
    /// Retire idle workers until there is work again.
    Quiesce,
    /// A worker has completed its handshake.
    Ready { worker: WorkerId },
    /// A worker could not be started. Its process, if there was one, is reaped.
    StartFailed { worker: WorkerId, failure: StartFailure },
    /// A worker violated the protocol.
    Misbehaved { worker: WorkerId },
    /// The process of a ready worker is about to end by itself.
    Crashed { worker: WorkerId },
    /// The process of a ready worker is dead or about to end, and everything that it wrote is
    /// handled.
    Died { worker: WorkerId, death: Box<WorkerDeath> },
    /// The process of a worker is gone, whose death may have been reported before.
    Reaped { worker: WorkerId },
    /// The answer to `Action::Inspect`, for a worker that is stopped by a signal.
    FoundStopped { worker: WorkerId },
    /// Shut the pool down. The strongest of several requests counts, and the earliest deadline.
    Shutdown { mode: Shutdown, timeout: Option<Duration> },
    /// The time that `next_deadline` returned has come.
    Tick,
    /// The driver cannot go on, for this reason.
    Break {
        #[serde(skip)]
        reason: Arc<str>,
    },
}

/// The progress of a task that was sent to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub struct Observation {
    /// Time at which the worker started it; `None` if it has not.
    pub began: Option<Monotonic>,
    /// Time at which its current section must have ended.
    pub section: Option<Monotonic>,
    /// Its usage, if it has begun and has a limit on that.
    pub usage: Option<Usage>,
    /// The stage that it has reached, if it has begun.
    pub stage: Stage,
}

/// The stage of a task that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Its function runs.
    Runs,
    /// Its function has ended, as its worker says, and the outcome is on its way.
    Ended,
    /// The driver copies its value.
    Copied,
}

/// The usage of a worker's resources by its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time since the first observation of the task, or of the item that runs now.
    pub cpu: Duration,
    /// `true` if this is the first observation.
    pub is_new: bool,
    /// Bytes above those that the worker had before its first task.
    pub memory: u64,
}

/// A chunk that a worker finished in part, or whose items failed in part.
#[derive(Debug, Serialize, Deserialize)]
pub struct Returned {
    pub worker: WorkerId,
    pub task: TaskId,
    pub attempt: Attempt,
    pub run_time: Duration,
    /// `true` if the worker exceeds `max_worker_rss`, or has left threads in spite of limits.
    pub worn: bool,
    /// Number of items that it has finished, from the first on.
    pub finished: NonZeroU32,
    /// Number of tasks into which the others are divided.
    pub parts: u32,
    /// Those among the finished items that failed and may run again, in order.
    pub failed: Vec<FailedItems>,
}

/// An attempt that ended with its worker's death.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InterruptedAttempt {
    /// Its position in the worker's table.
    pub ring_index: u16,
    /// Number of items that the worker has finished, from the first on. 0 unless the task is a
    /// chunk.
    pub finished: u32,
    /// `true` if the worker was running the task or, in a chunk, the next item.
    pub in_item: bool,
    /// Number of tasks into which the items that have not started are divided.
    pub parts: u32,
    /// Those among the finished items that failed and may run again, in order.
    pub failed: Vec<FailedItems>,
}

impl InterruptedAttempt {
    /// Returns that of a task that is not a chunk.
    pub fn of_task(ring_index: u16) -> Self {
        Self { ring_index, finished: 0, in_item: true, parts: 1, failed: Vec::new() }
    }
}

/// The death of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerDeath {
    /// The attempts that it interrupted.
    pub interrupted: Vec<InterruptedAttempt>,
    /// The reason why the kernel killed it, if its task exceeded a limit or made a forbidden call.
    pub cause: Option<KillCause>,
    /// `false` if the process still exists, with all that it uses. Then `Event::Reaped` follows.
    pub gone: bool,
    /// The way in which the process ended, as users see it in `PoolBroken`.
    #[serde(skip)]
    pub end: Arc<str>,
}

/// The reason why a worker could not be started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartFailure {
    /// `true` if another start would fail the same way (another build, no answer in time).
    pub permanent: bool,
    /// The text that users see in `PoolBroken`.
    #[serde(skip)]
    pub reason: Arc<str>,
}

// Several events per task are passed by value.
const _: () =
    assert!(size_of::<Event<Arc<()>>>() <= 40, "`Event` exceeds 40 bytes: box the rare variants");
