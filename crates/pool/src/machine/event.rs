//! Everything that can happen to a pool.

use std::sync::Arc;
use std::time::Duration;

use brigade_wire::slots::Revocation;
use brigade_wire::{Attempt, TaskId, WorkerId};
use serde::{Deserialize, Serialize};

use super::outbox::RevokeWhy;
use super::{Now, Shutdown, TaskRef, Terms};

/// The closed list of the machine's inputs. In a journal they are without what the driver attaches to a task.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = "T: Default"))]
pub(crate) enum Event<T> {
    /// A caller submits a task; handled only when there is room, else the caller waits outside.
    Submit(Submission<T>),
    /// A caller takes a task back.
    Cancel(TaskRef),
    /// A caller ends a task, also while it runs.
    Kill(TaskRef),
    /// The answer to `Action::Observe`.
    Observed {
        task: TaskRef,
        /// In a box, as it is seldom and large: events are handed on by value for each task.
        seen: Box<Observation>,
    },
    /// The task that a worker runs has begun a section that must end in time.
    SectionBegun { worker: WorkerId, link_slot: u16, due: Now },
    /// The answer to `Action::Revoke`.
    RevokeAnswer {
        task: TaskRef,
        worker: WorkerId,
        link_slot: u16,
        why: RevokeWhy,
        found: Revocation,
    },
    /// A worker answered a task; the driver holds the outcome and completes with it.
    Finished {
        worker: WorkerId,
        task: TaskId,
        attempt: Attempt,
        run_time: Duration,
        /// The worker uses more memory than it may.
        worn: bool,
    },
    /// A worker met a revoked task and passed over it.
    Skipped { worker: WorkerId, task: TaskId, attempt: Attempt },
    /// All answers that are there were handled: a worker that has nothing to do may take tasks over from others.
    Balance,
    /// All workers are wanted now, whether there is work or not.
    WarmUp,
    /// The most workers from now on.
    Resize { workers: usize },
    /// Workers that have nothing to do are to leave until there is work again.
    Quiesce,
    /// A worker has finished its handshake.
    Ready { worker: WorkerId },
    /// A worker could not be started; its process, if there was one, is reaped.
    StartFailed { worker: WorkerId, failure: StartFailure },
    /// A worker broke the protocol.
    Misbehaved { worker: WorkerId },
    /// A ready worker's process is dead and everything that it had written was handled.
    Died {
        worker: WorkerId,
        /// Slots of its table whose task had begun and was not answered.
        ran: Vec<u16>,
    },
    /// The answer to `Action::Inspect` for a worker that is stopped by a signal.
    FoundStopped { worker: WorkerId },
    /// The pool shall end; of several wishes the strongest counts, and the earliest end.
    Shutdown { mode: Shutdown, timeout: Option<Duration> },
    /// The time of `next_deadline` has come.
    Tick,
    /// The driver cannot do its part any more, for this reason.
    Break {
        #[serde(skip)]
        reason: Arc<str>,
    },
}

/// How far a task has come that was sent to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Observation {
    /// When its worker has begun it; `None` when it has not.
    pub(crate) began: Option<Now>,
    /// When the section that it is in must have ended.
    pub(crate) section: Option<Now>,
}

/// A task as it enters the machine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = "T: Default"))]
pub(crate) struct Submission<T> {
    pub(crate) id: TaskId,
    #[serde(skip)]
    pub(crate) task: T,
    /// Which run of the task its first one in here is.
    pub(crate) attempt: Attempt,
    /// How often the task may run again after the death of its worker, or after a deadline.
    pub(crate) retries: u32,
    /// What few tasks ask for.
    pub(crate) terms: Option<Box<Terms>>,
}

/// Why a worker did not come up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StartFailure {
    /// A second try would fail in the same way (another build, no answer in time).
    pub(crate) permanent: bool,
    /// The sentence that users read in `PoolBroken`.
    #[serde(skip)]
    pub(crate) reason: Arc<str>,
}

// Each task takes several events by value through the machine.
const _: () = assert!(size_of::<Event<Arc<()>>>() <= 40, "an event has grown: box what is seldom");
