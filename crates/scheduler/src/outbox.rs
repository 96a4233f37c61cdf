//! The scheduler's outputs.

#![expect(missing_docs, reason = "fields are named after their types, which have documentation")]

use std::collections::VecDeque;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use crate::failure::RetryWhy;
use crate::{KillCause, TaskKey, TaskRef};

/// Actions in the order in which the driver carries them out.
#[derive(Debug)]
pub struct Outbox<T> {
    actions: VecDeque<Action<T>>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { actions: VecDeque::new() }
    }
}

impl<T> Outbox<T> {
    #[inline]
    pub fn push(&mut self, action: Action<T>) {
        self.actions.push_back(action);
    }

    /// Returns the actions that are not carried out yet.
    pub fn actions(&self) -> impl Iterator<Item = &Action<T>> {
        self.actions.iter()
    }

    /// Removes and returns the next action.
    #[inline]
    pub fn pop(&mut self) -> Option<Action<T>> {
        self.actions.pop_front()
    }
}

/// An output of the scheduler, which the driver carries out.
#[derive(Debug, Serialize)]
#[serde(bound = "")]
pub enum Action<T> {
    /// A submitted task was accepted under this key.
    Accepted { task: TaskRef },
    /// Arm the state word and write the task into the worker's link.
    Send(Sending),
    /// Try to revoke an assigned task, and answer with `Event::RevokeAnswer`.
    Revoke { worker: WorkerId, ring_index: u16, task: TaskRef, why: RevokeWhy },
    /// Look up when the task started, and answer with `Event::Observed`.
    Observe { worker: WorkerId, ring_index: u16, task: TaskRef },
    /// The task has its outcome; the scheduler has removed it.
    Complete { removed: Removed<T>, end: TaskEnd },
    /// The task is too old: it was submitted so long ago.
    Slow { task: TaskRef, elapsed: Duration },
    /// This number of further tasks is too old.
    MoreSlow { tasks: usize },
    /// Start a process for this worker.
    Spawn { worker: WorkerId },
    /// Ask the worker to stop when it has nothing left to do.
    Stop { worker: WorkerId },
    /// Send SIGTERM to the worker's process group.
    Terminate { worker: WorkerId },
    /// The worker is retired, for this reason.
    Retired { worker: WorkerId, why: &'static str },
    /// The worker that the next action kills runs this task, or nothing.
    TaskKilled { worker: WorkerId, task: TaskId, cause: KillCause },
    /// Kill the worker's process group.
    Kill {
        worker: WorkerId,
        cause: KillCause,
        /// `true` if its task will not run again. The worker may then be reported dead as soon as
        /// the signal was sent. The system may take long to clean up a process, and its successor
        /// need not wait for that.
        at_once: bool,
    },
    /// Check if the worker's process is stopped by a signal, and answer with `Event::FoundStopped`
    /// if it is.
    Inspect { worker: WorkerId },
    /// A task, or an item that is a task from now on, returned to the queue for another attempt.
    Retried { task: TaskRef, attempt: Attempt, worker: WorkerId, why: RetryWhy },
    /// A task, or items that are a task from now on, returned to the queue without having started.
    Requeued { task: TaskRef, worker: WorkerId },
    /// The pool is broken, for the reason in `broken_reason`, and accepts no more tasks.
    Broke,
    /// The shutdown has ended: no task and no process is left.
    Ended,
}

/// A task on its way to a worker.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sending {
    pub worker: WorkerId,
    pub ring_index: u16,
    pub key: TaskKey,
    pub id: TaskId,
    pub attempt: Attempt,
    /// Number of frames that the worker has not answered yet, as far as is known.
    pub unanswered: u16,
}

/// A task that the scheduler has removed.
#[derive(Debug, Serialize)]
#[serde(bound = "")]
pub struct Removed<T> {
    #[serde(skip)]
    pub task: T,
    pub attempt: Attempt,
    /// Number of tasks that end: the items of a chunk, 1 for others, and 0 for a task that was not
    /// accepted.
    #[serde(skip)]
    pub items: u32,
    /// Time of the submission.
    #[serde(skip)]
    pub submitted: Monotonic,
}

/// The end of a task, as far as the scheduler knows. The driver adds the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TaskEnd {
    /// The worker finished it; the driver holds the outcome.
    Reported,
    /// The worker finished all its items, and ended before it could report that.
    Finished,
    /// It was cancelled before it started.
    Cancelled,
    /// Its worker died while it ran.
    Died,
    /// Too many workers died running it, so it is not retried although it has retries left.
    Quarantined,
    /// Its queue deadline expired before it started.
    Expired,
    /// The pool killed its worker while it ran.
    Killed(KillCause),
    /// The pool is broken.
    Broken,
    /// The pool had been shut down.
    Closed,
}

/// The purpose of a revocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RevokeWhy {
    /// A caller, or a shutdown, cancels the task.
    Cancel,
    /// Another worker takes the task over.
    Steal,
    /// The pool broke.
    Break,
    /// The queue deadline of the task expired.
    Expire,
    /// A caller ends the task, even while it runs.
    Kill,
    /// The task before it is about to be killed.
    Clear,
}

// Several actions per task are passed by value.
const _: () = assert!(
    size_of::<Action<std::sync::Arc<()>>>() <= 40,
    "`Action` exceeds 40 bytes: box the rare variants"
);
