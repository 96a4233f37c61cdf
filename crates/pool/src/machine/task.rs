//! A task inside the machine.

use brigade_wire::{Attempt, TaskId};

/// Where a task lives in the machine; reused after it is done, so always paired with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskKey(u32);

impl TaskKey {
    pub(super) fn new(index: usize) -> Self {
        let index = u32::try_from(index).ok().filter(|index| *index < u32::MAX);
        Self(index.expect("fewer than four billion tasks at a time"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }

    /// As a number for [`from_raw`](Self::from_raw), which is never the largest there is.
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    pub(crate) fn from_raw(raw: u32) -> Self {
        Self(raw)
    }
}

/// A key with the id that makes it unmistakable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub(super) place: Place,
    /// Neighbours in the queue while `place` is `Queued`.
    pub(super) previous: Option<TaskKey>,
    pub(super) next: Option<TaskKey>,
}

impl<T> TaskEntry<T> {
    pub(super) fn new(id: TaskId, task: T, attempt: Attempt, retries: u32) -> Self {
        Self {
            id,
            task,
            attempt,
            retries_left: retries,
            place: Place::Queued,
            previous: None,
            next: None,
        }
    }
}

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Linked into the queue.
    Queued,
    /// Written into a worker's link; the state word of the slot tells whether it has begun.
    Assigned { worker: u32, link_slot: u16 },
}
