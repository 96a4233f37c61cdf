//! A task inside the machine.

use std::num::NonZeroU32;
use std::time::Duration;

use brigade_timer::TimerKey;
use brigade_wire::{Attempt, TaskId};
use serde::{Deserialize, Serialize};

use super::{Now, Submission};

/// Where a task lives in the machine; reused after it is done, so always paired with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskKey(NonZeroU32);

impl TaskKey {
    pub(super) fn new(index: usize) -> Self {
        let number = u32::try_from(index).ok().filter(|index| *index < u32::MAX - 1);
        Self(
            number
                .and_then(|index| NonZeroU32::new(index + 1))
                .expect("fewer than four billion tasks at a time"),
        )
    }

    pub(super) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// As a number for [`from_raw`](Self::from_raw), which is never 0.
    pub(crate) fn raw(self) -> u32 {
        self.0.get()
    }

    pub(crate) fn from_raw(raw: u32) -> Option<Self> {
        NonZeroU32::new(raw).map(Self)
    }
}

/// A key with the id that makes it unmistakable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaskRef {
    pub(crate) key: TaskKey,
    pub(crate) id: TaskId,
}

#[derive(Debug)]
pub(super) struct TaskEntry<T> {
    pub(super) id: TaskId,
    pub(super) task: T,
    pub(super) attempt: Attempt,
    pub(super) retries_left: u32,
    /// Workers that died under it.
    pub(super) deaths: u32,
    pub(super) place: Place,
    /// When it was submitted, in nanoseconds of the machine's clock.
    pub(super) submitted: u64,
    /// Neighbours in the queue while `place` is `Queued` and the task is plain.
    pub(super) previous: Option<TaskKey>,
    pub(super) next: Option<TaskKey>,
    /// What few tasks ask for.
    pub(super) terms: Option<Box<Terms>>,
}

/// What a task may ask for beyond being run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// Higher ones run first; see `Rank`.
    pub(crate) priority: i32,
    /// The only worker slot that may run the task.
    pub(crate) slot: Option<u32>,
    /// How long it may wait, from its submission until it begins for the first time.
    pub(crate) queue_limit: Option<Duration>,
    /// How long it may run.
    pub(crate) run_limit: Option<Duration>,
    /// When the task is looked at next.
    #[serde(skip)]
    pub(crate) timer: Option<TimerKey>,
    /// It has begun in an earlier attempt, so it has not waited too long.
    pub(crate) began: bool,
    /// When it began in this attempt, as far as that was looked at.
    pub(crate) began_at: Option<Now>,
}

/// The order of waiting tasks: by the time of submission, with each step of priority worth [`AGING`]. So a task is
/// overtaken only by what is submitted within that time after it, and starves never.
pub(super) type Rank = (i128, TaskId);

/// What one step of priority is worth.
pub(super) const AGING: Duration = Duration::from_secs(10);

impl<T> TaskEntry<T> {
    pub(super) fn new(now: Now, submission: Submission<T>) -> Self {
        let Submission { id, task, attempt, retries, terms } = submission;
        Self {
            id,
            task,
            attempt,
            retries_left: retries,
            deaths: 0,
            place: Place::Queued,
            submitted: u64::try_from(now.as_nanos()).unwrap_or(u64::MAX),
            previous: None,
            next: None,
            terms,
        }
    }

    pub(super) fn rank(&self) -> Rank {
        let head_start = i128::from(self.priority()) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted) - head_start, self.id)
    }

    pub(super) fn priority(&self) -> i32 {
        self.terms.as_ref().map_or(0, |terms| terms.priority)
    }

    /// The only slot that may run the task.
    pub(super) fn slot(&self) -> Option<u32> {
        self.terms.as_ref().and_then(|terms| terms.slot)
    }
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the queue.
    Queued,
    /// Waits for a worker of its own; see `Terms::slot`.
    Reserved,
    /// Written into a worker's link; the state word of the slot tells whether it has begun.
    Assigned { worker: u32, link_slot: u16 },
}
