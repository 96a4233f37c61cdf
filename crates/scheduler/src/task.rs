//! The scheduler's record of a task.

use std::num::NonZeroU32;
use std::time::Duration;

use brigade_ids::{Attempt, TaskId};
use brigade_time::{Monotonic, TimerKey};
use serde::{Deserialize, Serialize};

/// Index of a task in the scheduler. It is reused after the task has ended, so it is always paired
/// with the task's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskKey(NonZeroU32);

impl TaskKey {
    #[expect(clippy::expect_used, reason = "memory ends long before four billion tasks")]
    #[inline]
    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index).ok().filter(|index| *index < u32::MAX - 1);
        Self(
            number
                .and_then(|index| NonZeroU32::new(index + 1))
                .expect("fewer than four billion tasks at a time"),
        )
    }

    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// Returns the key as a number for [`from_raw`](Self::from_raw), which is never 0.
    #[inline]
    pub fn raw(self) -> u32 {
        self.0.get()
    }

    /// Returns the key with this number; `None` for 0.
    #[inline]
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
    /// Number of items, if the task is a chunk of a map.
    pub(crate) items: Option<NonZeroU32>,
    pub(crate) retries_left: u32,
    /// Number of workers that died running it.
    pub(crate) deaths: u32,
    pub(crate) state: TaskState,
    /// Time of submission.
    pub(crate) submitted: Monotonic,
    /// Neighbors in the queue, while `state` is `Queued` and the task is plain.
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
    /// `true` if `hard_limit` is the sum of the limits of the task's items.
    pub items_share_limit: bool,
    /// The timer that triggers the next check of the task.
    #[serde(skip)]
    pub(crate) alarm: Option<TimerKey>,
    /// `true` if an earlier attempt has started, so that the queue deadline no longer applies.
    #[serde(skip)]
    pub(crate) began: bool,
    /// Start of the current attempt, if it was observed.
    pub(crate) started_at: Option<Monotonic>,
    /// The next check of the task that its worker relies on for the section that is open, or that
    /// it may open in the meantime.
    #[serde(skip)]
    pub(crate) section_check: Option<Monotonic>,
    /// `true` if items that have not started never will.
    #[serde(skip)]
    pub(crate) cancelled: bool,
}

/// A task as it enters the scheduler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = "T: Default"))]
pub struct Submission<T> {
    /// Its id.
    pub id: TaskId,
    /// The driver's data.
    #[serde(skip)]
    pub task: T,
    /// Number of items, if the task is a chunk of a map. The ids of the items follow that of the
    /// task, which is the first one's.
    pub items: Option<NonZeroU32>,
    /// Number of further attempts allowed after its worker died or its deadline expired.
    pub retries: u32,
    /// Set for the few tasks that have any.
    pub constraints: Option<Box<Constraints>>,
}

/// The order of waiting tasks: by time of submission, where each step of priority is worth
/// [`AGING`]. So a task is overtaken only by tasks that are submitted within that time after it,
/// and never starves.
pub(crate) type Rank = (i128, TaskId);

/// Head start that one step of priority gives.
pub(crate) const AGING: Duration = Duration::from_secs(10);

impl<T> TaskEntry<T> {
    #[inline]
    pub(crate) fn new(now: Monotonic, submission: Submission<T>) -> Self {
        let Submission { id, task, items, retries, constraints } = submission;
        Self {
            id,
            task,
            attempt: Attempt::first(),
            items,
            retries_left: retries,
            deaths: 0,
            state: TaskState::Queued,
            submitted: now,
            previous: None,
            next: None,
            constraints,
        }
    }

    /// Splits off the items from `at` on, with their data, as a task that waits nowhere yet.
    pub(crate) fn split_off(&mut self, at: u32, task: T) -> Self {
        let count = self.items.map_or(1, NonZeroU32::get);
        let constraints = self.constraints.as_deref_mut().map(|constraints| {
            let limit_of = |count_after| constraints.limit_of_items(count, count_after);
            let (first, rest) = (limit_of(at), limit_of(count.saturating_sub(at)));
            constraints.hard_limit = first;
            Box::new(Constraints {
                hard_limit: rest,
                alarm: None,
                started_at: None,
                ..constraints.clone()
            })
        });
        self.items = NonZeroU32::new(at);
        Self {
            id: TaskId::new(self.id.get() + u64::from(at)),
            task,
            items: NonZeroU32::new(count.saturating_sub(at)),
            state: TaskState::Queued,
            previous: None,
            next: None,
            constraints,
            ..*self
        }
    }

    /// Returns the number of items of a chunk, and 1 for other tasks.
    #[inline]
    pub(crate) fn count(&self) -> u64 {
        self.items.map_or(1, |items| items.get().into())
    }

    /// Returns `true` if the task is a chunk whose items do not run again after a worker, because
    /// nobody wants them any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.constraints.as_ref().is_some_and(|constraints| constraints.cancelled)
    }

    pub(crate) fn rank(&self) -> Rank {
        let head_start = i128::from(self.priority()) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted.as_nanos()) - head_start, self.id)
    }

    #[inline]
    pub(crate) fn priority(&self) -> i32 {
        self.constraints.as_ref().map_or(0, |constraints| constraints.priority)
    }

    /// Returns the only slot whose worker may run the task, if there is one.
    #[inline]
    pub(crate) fn slot(&self) -> Option<u32> {
        self.constraints.as_ref().and_then(|constraints| constraints.slot)
    }
}

impl Constraints {
    /// Returns the hard limit of `after` of the task's `before` items.
    fn limit_of_items(&self, before: u32, after: u32) -> Option<Duration> {
        let limit = self.hard_limit?;
        let shared = self.items_share_limit;
        Some(if shared { (limit / before.max(1)).saturating_mul(after) } else { limit })
    }
}

/// The state of a task until its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// In the queue.
    Queued,
    /// Waits for one particular worker; see `Constraints::slot`.
    Reserved,
    /// Written into a worker's link. The state word shows whether it has started.
    Assigned { worker: u32, ring_index: u16 },
}
