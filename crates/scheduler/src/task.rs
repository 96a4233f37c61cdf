//! The scheduler's record of a task.

use std::num::NonZeroU32;
use std::time::Duration;

use brigade_ids::{Attempt, TaskId};
use brigade_time::{Monotonic, TimerKey};
use serde::{Deserialize, Serialize};

use crate::Submission;

/// Index of a task in the scheduler. It is reused after the task has ended, so it is always paired
/// with the task's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskKey(NonZeroU32);

impl TaskKey {
    #[expect(clippy::expect_used, reason = "memory ends long before four billion tasks")]
    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index).ok().filter(|index| *index < u32::MAX - 1);
        Self(
            number
                .and_then(|index| NonZeroU32::new(index + 1))
                .expect("fewer than four billion tasks at a time"),
        )
    }

    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the key as a number for [`from_raw`](Self::from_raw), which is never 0.
    pub fn raw(self) -> u32 {
        self.0.get()
    }

    /// Returns the key with this number; `None` for 0.
    pub fn from_raw(raw: u32) -> Option<Self> {
        NonZeroU32::new(raw).map(Self)
    }
}

/// A key with the id that makes it unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRef {
    /// The index.
    pub key: TaskKey,
    /// The id.
    pub id: TaskId,
}

#[derive(Debug)]
pub(crate) struct TaskEntry<T> {
    pub(crate) id: TaskId,
    pub(crate) task: T,
    pub(crate) attempt: Attempt,
    pub(crate) retries_left: u32,
    /// Number of workers that died running it.
    pub(crate) deaths: u32,
    pub(crate) place: Place,
    /// Time of submission.
    pub(crate) submitted: Monotonic,
    /// Neighbors in the queue, while `place` is `Queued` and the task is plain.
    pub(crate) previous: Option<TaskKey>,
    pub(crate) next: Option<TaskKey>,
    /// Set for the few tasks that have any.
    pub(crate) constraints: Option<Box<Constraints>>,
}

/// Priority, slot and deadlines of a task, as far as the scheduler enforces them. A chunk of a map
/// has the limits of all its items together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Constraints {
    /// Tasks of higher priority run first; see `Rank`.
    pub priority: i32,
    /// The only slot whose worker may run the task.
    pub slot: Option<u32>,
    /// The queue deadline: maximum time from its submission until it first starts.
    pub queue_limit: Option<Duration>,
    /// The hard deadline: maximum run time of an attempt.
    pub hard_limit: Option<Duration>,
    /// The timer that triggers the next check of the task.
    #[serde(skip)]
    pub(crate) alarm: Option<TimerKey>,
    /// `true` if an earlier attempt has started, so that the queue deadline no longer applies.
    pub began: bool,
    /// Start of the current attempt, if it was observed.
    pub(crate) started_at: Option<Monotonic>,
}

/// The order of waiting tasks: by time of submission, where each step of priority is worth
/// [`AGING`]. So a task is overtaken only by tasks that are submitted within that time after it,
/// and never starves.
pub(crate) type Rank = (i128, TaskId);

/// Head start that one step of priority gives.
pub(crate) const AGING: Duration = Duration::from_secs(10);

impl<T> TaskEntry<T> {
    pub(crate) fn new(now: Monotonic, submission: Submission<T>) -> Self {
        let Submission { id, task, attempt, retries, constraints } = submission;
        Self {
            id,
            task,
            attempt,
            retries_left: retries,
            deaths: 0,
            place: Place::Queued,
            submitted: now,
            previous: None,
            next: None,
            constraints,
        }
    }

    pub(crate) fn rank(&self) -> Rank {
        let head_start = i128::from(self.priority()) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted.as_nanos()) - head_start, self.id)
    }

    pub(crate) fn priority(&self) -> i32 {
        self.constraints.as_ref().map_or(0, |constraints| constraints.priority)
    }

    /// Returns the only slot whose worker may run the task, if there is one.
    pub(crate) fn slot(&self) -> Option<u32> {
        self.constraints.as_ref().and_then(|constraints| constraints.slot)
    }
}

/// The place of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the queue.
    Queued,
    /// Waits for one particular worker; see `Constraints::slot`.
    Reserved,
    /// Written into a worker's link. The state word shows whether it has started.
    Assigned { worker: u32, ring_index: u16 },
}
