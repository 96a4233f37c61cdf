//! Everything that the machine may ask for.

use std::collections::VecDeque;

use brigade_wire::{Attempt, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use super::{KillCause, TaskKey, TaskRef};

/// Actions in the order in which they are to be carried out.
#[derive(Debug)]
pub(crate) struct Outbox<T> {
    actions: VecDeque<Action<T>>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { actions: VecDeque::new() }
    }
}

impl<T> Outbox<T> {
    pub(crate) fn push(&mut self, action: Action<T>) {
        self.actions.push_back(action);
    }

    /// What is still to be carried out.
    pub(crate) fn actions(&self) -> impl Iterator<Item = &Action<T>> {
        self.actions.iter()
    }

    /// The next one.
    pub(crate) fn pop(&mut self) -> Option<Action<T>> {
        self.actions.pop_front()
    }
}

/// One thing to do.
#[derive(Debug, Serialize)]
#[serde(bound = "")]
pub(crate) enum Action<T> {
    /// A submitted task has this place in the machine.
    Accepted { task: TaskRef },
    /// Arm the slot and write the task into the worker's link.
    Send {
        worker: WorkerId,
        link_slot: u16,
        key: TaskKey,
        id: TaskId,
        attempt: Attempt,
        /// Frames that the worker has not answered yet, as far as is known.
        ahead: u16,
    },
    /// Try to take an assigned task back; answer with `Event::RevokeAnswer`.
    Revoke { worker: WorkerId, link_slot: u16, task: TaskRef, why: RevokeWhy },
    /// See when the task has begun; answer with `Event::Observed`.
    Observe { worker: WorkerId, link_slot: u16, task: TaskRef },
    /// The task has its outcome; the machine has forgotten it.
    Complete {
        #[serde(skip)]
        task: T,
        attempt: Attempt,
        end: End,
    },
    /// Start a process for this worker.
    Spawn { worker: WorkerId },
    /// Ask the worker to leave when it has nothing left to do.
    Stop { worker: WorkerId },
    /// Ask the worker's process group to end (SIGTERM).
    Terminate { worker: WorkerId },
    /// A worker is to leave once it has done what it runs, and is not missed.
    Retired { worker: WorkerId, why: &'static str },
    /// The worker that the next action kills runs this task, or nothing.
    Condemned { worker: WorkerId, task: TaskId, cause: KillCause },
    /// Kill the worker's process group.
    Kill {
        worker: WorkerId,
        cause: KillCause,
        /// What it runs is not run again, so the worker may be reported dead as soon as the signal was sent: the system
        /// may take long to clear up a process, and its successor need not wait for that.
        at_once: bool,
    },
    /// See whether the worker's process is stopped; if so answer with `Event::FoundStopped`.
    Inspect { worker: WorkerId },
    /// A task goes back to the queue with another attempt.
    Retried { id: TaskId, attempt: Attempt, worker: WorkerId },
    /// A task that had not begun goes back to the queue.
    Requeued { id: TaskId, worker: WorkerId },
    /// The pool takes no more tasks, for the reason in `broken_reason`.
    Broke,
    /// `next_deadline` may have changed.
    Rearm,
    /// No task and no process is left after a shutdown.
    Ended,
}

/// How a task ended, as far as the machine knows; the driver adds what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum End {
    /// The worker answered; the outcome is in the driver's hands.
    Reported,
    /// Taken back before it began.
    Cancelled,
    /// Its worker died while it ran.
    Died,
    /// So many workers have died under it that it runs no more, although it may run again.
    Quarantined,
    /// It has not begun within the time that it may wait.
    Expired,
    /// It ran when the pool killed its worker.
    Killed(KillCause),
    /// The pool is broken.
    Broken,
    /// The pool had been shut down.
    Closed,
}

/// What happens to a task after it was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RevokeWhy {
    /// Its caller, or a shutdown, cancels it.
    Cancel,
    /// An idle worker takes it over.
    Steal,
    /// The pool broke.
    Break,
    /// It has waited too long.
    Expire,
    /// Its caller ends it, also while it runs.
    Kill,
    /// The task before it is to be killed.
    Clear,
}

// Each task takes several actions by value through the outbox.
const _: () = assert!(
    size_of::<Action<std::sync::Arc<()>>>() <= 40,
    "an action has grown: box what is seldom"
);
