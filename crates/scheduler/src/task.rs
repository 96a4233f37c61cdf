//! Tasks as the driver describes and names them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use brigade_base::{Monotonic, Needs, Retry, TaskId, TimerKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// Priority, slot and deadlines of a task, as far as the scheduler enforces them. A chunk of a map
/// has the limits of all its items together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
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
    /// Maximum processor time of an attempt, or of each item of a chunk.
    pub cpu_limit: Option<Duration>,
    /// Maximum memory that the task may add to its worker, in bytes, if the driver has to watch it.
    pub memory_limit: Option<u64>,
    /// `true` if the driver prepares the worker for this task, which must have no other one then.
    pub alone: bool,
    /// Resources that an attempt takes, if any. Such a task goes to an idle worker.
    pub needs: Option<Needs>,
    /// Number of attempts at the task elsewhere, from which the attempts here are counted on.
    pub earlier_attempts: u32,
    /// The pauses between attempts.
    pub retry: Retry,
    /// `true` if the task runs again after a panic.
    pub retries_panics: bool,
    /// `true` if the task runs again after it has returned an `Err`.
    pub retries_errors: bool,
    /// The timer that triggers the next check of the task.
    #[serde(skip)]
    pub(crate) alarm: Option<TimerKey>,
    /// `true` if an earlier attempt has started, so that the queue deadline no longer applies.
    #[serde(skip)]
    pub(crate) began: bool,
    /// Start of the current attempt, if it was observed.
    pub(crate) started_at: Option<Monotonic>,
    /// Time since which no other task is before it in its worker.
    #[serde(skip)]
    pub(crate) first_since: Option<Monotonic>,
    /// The next check of the task that its worker relies on for the section that is open, or that
    /// it may open in the meantime.
    #[serde(skip)]
    pub(crate) section_check: Option<Monotonic>,
    /// The time at which the function was first seen to have ended in the current attempt.
    #[serde(skip)]
    pub(crate) ended_at: Option<Monotonic>,
    /// `true` if a caller has killed the current attempt.
    #[serde(skip)]
    pub(crate) is_asked: bool,
    /// `true` if items that have not started never will.
    #[serde(skip)]
    pub(crate) cancelled: bool,
}

/// The driver's data for a task.
pub trait TaskData {
    /// Returns the task's id, which never changes.
    fn id(&self) -> TaskId;
}

/// The data of a replayed journal, which has nothing but ids.
impl TaskData for TaskId {
    fn id(&self) -> TaskId {
        *self
    }
}

impl<T: TaskData> TaskData for Arc<T> {
    #[inline]
    fn id(&self) -> TaskId {
        T::id(self)
    }
}

/// A task as it enters the scheduler.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(serialize = "T: TaskData", deserialize = "T: From<TaskId>"))]
pub struct Submission<T> {
    /// The driver's data. A journal has the task's id in its place.
    #[serde(serialize_with = "serialize_id", deserialize_with = "deserialize_id")]
    pub task: T,
    /// Number of items, if the task is a chunk of a map. The ids of the items follow that of the
    /// task, which is the first one's.
    pub items: Option<NonZeroU32>,
    /// Number of further attempts allowed after its worker died or its deadline expired.
    pub retries: u32,
    /// Set for the few tasks that have any.
    pub constraints: Option<Box<Constraints>>,
}

fn serialize_id<T: TaskData, S: Serializer>(task: &T, to: S) -> Result<S::Ok, S::Error> {
    task.id().serialize(to)
}

fn deserialize_id<'de, T: From<TaskId>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    TaskId::deserialize(from).map(T::from)
}

/// The order of waiting tasks: by time of submission, where each step of priority is worth
/// [`AGING`]. So a task is overtaken only by tasks that are submitted within that time after it,
/// and never starves.
pub(crate) type Rank = (i128, TaskId);

/// Head start that one step of priority gives.
pub(crate) const AGING: Duration = Duration::from_secs(10);

impl Constraints {
    /// Returns the hard limit of `after` of the task's `before` items.
    pub(crate) fn limit_of_items(&self, before: u32, after: u32) -> Option<Duration> {
        let limit = self.hard_limit?;
        let shared = self.items_share_limit;
        Some(if shared { (limit / before.max(1)).saturating_mul(after) } else { limit })
    }
}
