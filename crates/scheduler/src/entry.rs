//! The scheduler's record of a task.

use std::num::NonZeroU32;

use brigade_base::{Attempt, Monotonic, TaskId};

use crate::task::{Constraints, TaskData, TaskKey};

/// A task of the scheduler.
///
/// There is one for each queued task, so it is small: fields that are not needed at the same time
/// share their bytes, and everything that few tasks have is in [`RareAttributes`].
#[derive(Debug)]
pub(crate) struct TaskEntry<T> {
    pub(crate) task: T,
    /// The key of the neighbor before this one in the queue, or the slot of the task's worker.
    before: u32,
    /// The key of the neighbor behind this one in the queue, or the task's position in its worker's
    /// table.
    behind: u32,
    /// The state in the lowest bits, [`HAS_RARE`], and above them the index of the task's
    /// [`RareAttributes`] or the nanoseconds of its submission.
    word: u64,
}

/// The bits of [`EntryState`] in a word.
const STATE: u64 = 0b11;
const QUEUED: u64 = 0;
const RESERVED: u64 = 1;
const ASSIGNED: u64 = 2;
const PAUSED: u64 = 3;

/// Set in a word if the task has something rare.
const HAS_RARE: u64 = 0b100;

/// Number of the lowest bits of a word that are not the index or the time.
const SHIFT: u32 = 3;

/// The state of a task until its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// In the queue.
    Queued,
    /// Waits for one particular worker; see `Constraints::slot`.
    Reserved,
    /// Waits for the time of its next attempt.
    Paused,
    /// Written into a worker's link. The state word shows whether it has started.
    Assigned { worker: u32, ring_index: u16 },
}

/// The attributes of a task that few tasks have.
#[derive(Debug)]
pub(crate) struct RareAttributes {
    /// Time of submission.
    pub(crate) submitted: Monotonic,
    pub(crate) attempt: Attempt,
    /// Number of items, if the task is a chunk of a map.
    pub(crate) items: Option<NonZeroU32>,
    pub(crate) retries_left: u32,
    /// Number of workers that died running it.
    pub(crate) deaths: u32,
    /// Set for the few tasks that have any.
    pub(crate) constraints: Option<Box<Constraints>>,
}

impl<T> TaskEntry<T> {
    /// Creates a task that waits nowhere yet. Returns `task` if the time has too many bits, so that
    /// the task needs a [`RareAttributes`].
    #[inline]
    pub(crate) fn new(task: T, submitted: Monotonic) -> Result<Self, T> {
        match submitted.as_nanos().checked_mul(1 << SHIFT) {
            Some(time) => Ok(Self { task, before: 0, behind: 0, word: time | QUEUED }),
            None => Err(task),
        }
    }

    /// Creates a task with something rare, which waits nowhere yet.
    pub(crate) fn with_rare(task: T, index: u32) -> Self {
        let mut entry = Self { task, before: 0, behind: 0, word: QUEUED };
        entry.set_rare(index);
        entry
    }

    /// Returns the index of the task's [`RareAttributes`], or else its time of submission.
    #[inline]
    pub(crate) fn rare(&self) -> Result<usize, Monotonic> {
        let value = self.word >> SHIFT;
        // The value was an index, so nothing is cut off.
        if self.word & HAS_RARE != 0 {
            Ok(value as usize)
        } else {
            Err(Monotonic::from_nanos(value))
        }
    }

    /// Replaces the time of submission by the index of a [`RareAttributes`], which contains it.
    pub(crate) fn set_rare(&mut self, index: u32) {
        self.word = u64::from(index) << SHIFT | HAS_RARE | self.word & STATE;
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the position was a `u16`")]
    pub(crate) fn state(&self) -> EntryState {
        match self.word & STATE {
            QUEUED => EntryState::Queued,
            RESERVED => EntryState::Reserved,
            PAUSED => EntryState::Paused,
            _ => EntryState::Assigned { worker: self.before, ring_index: self.behind as u16 },
        }
    }

    #[inline]
    fn set_state(&mut self, state: u64, before: u32, behind: u32) {
        self.word = self.word & !STATE | state;
        (self.before, self.behind) = (before, behind);
    }

    /// Puts the task between these neighbors in the queue.
    #[inline]
    pub(crate) fn queue(&mut self, before: Option<TaskKey>, behind: Option<TaskKey>) {
        self.set_state(QUEUED, raw(before), raw(behind));
    }

    pub(crate) fn reserve(&mut self) {
        self.set_state(RESERVED, 0, 0);
    }

    pub(crate) fn pause(&mut self) {
        self.set_state(PAUSED, 0, 0);
    }

    #[inline]
    pub(crate) fn assign(&mut self, worker: u32, ring_index: u16) {
        self.set_state(ASSIGNED, worker, ring_index.into());
    }

    /// Returns the neighbors of a task in the queue.
    #[inline]
    pub(crate) fn neighbors(&self) -> (Option<TaskKey>, Option<TaskKey>) {
        debug_assert_eq!(self.state(), EntryState::Queued);
        (TaskKey::from_raw(self.before), TaskKey::from_raw(self.behind))
    }

    #[inline]
    pub(crate) fn set_before(&mut self, before: Option<TaskKey>) {
        debug_assert_eq!(self.state(), EntryState::Queued);
        self.before = raw(before);
    }

    #[inline]
    pub(crate) fn set_behind(&mut self, behind: Option<TaskKey>) {
        debug_assert_eq!(self.state(), EntryState::Queued);
        self.behind = raw(behind);
    }
}

impl<T: TaskData> TaskEntry<T> {
    #[inline]
    pub(crate) fn id(&self) -> TaskId {
        self.task.id()
    }
}

impl RareAttributes {
    /// Returns that of a task like most.
    pub(crate) fn of(submitted: Monotonic) -> Self {
        Self {
            submitted,
            attempt: Attempt::first(),
            items: None,
            retries_left: 0,
            deaths: 0,
            constraints: None,
        }
    }

    /// Splits off that of the items from `at` on.
    pub(crate) fn split_off(&mut self, at: u32) -> Self {
        let count = self.items.map_or(1, NonZeroU32::get);
        let constraints = self.constraints.as_deref_mut().map(|constraints| {
            let limit_of = |count_after| constraints.limit_of_items(count, count_after);
            let (first, rest) = (limit_of(at), limit_of(count.saturating_sub(at)));
            constraints.hard_limit = first;
            Box::new(Constraints {
                hard_limit: rest,
                alarm: None,
                started_at: None,
                ended_at: None,
                is_asked: false,
                ..constraints.clone()
            })
        });
        self.items = NonZeroU32::new(at);
        Self { items: NonZeroU32::new(count.saturating_sub(at)), constraints, ..*self }
    }
}

/// Returns the number of a key; 0 stands for none.
#[inline]
fn raw(key: Option<TaskKey>) -> u32 {
    key.map_or(0, TaskKey::raw)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Each queued task has one.
    #[test]
    fn an_entry_takes_24_bytes() {
        assert_eq!(size_of::<Option<TaskEntry<Arc<()>>>>(), 24);
    }

    #[test]
    fn an_entry_keeps_the_time_or_the_index_in_every_state() {
        let submitted = Monotonic::from_nanos(u64::MAX >> SHIFT);
        let mut entry = TaskEntry::new((), submitted).expect("a time that has room");
        assert!(TaskEntry::new((), Monotonic::from_nanos((u64::MAX >> SHIFT) + 1)).is_err());
        let keys = (TaskKey::from_raw(u32::MAX), TaskKey::from_raw(7));
        for rare in [Err(submitted), Ok(u32::MAX as usize)] {
            if rare.is_ok() {
                entry.set_rare(u32::MAX);
            }
            entry.assign(u32::MAX, u16::MAX);
            let assigned = EntryState::Assigned { worker: u32::MAX, ring_index: u16::MAX };
            assert_eq!((entry.state(), entry.rare()), (assigned, rare));
            entry.reserve();
            assert_eq!((entry.state(), entry.rare()), (EntryState::Reserved, rare));
            entry.queue(keys.0, None);
            entry.set_behind(keys.1);
            assert_eq!((entry.neighbors(), entry.rare()), (keys, rare));
            entry.set_before(None);
            assert_eq!(entry.neighbors(), (None, keys.1));
        }
    }
}
