//! A task inside the machine.

use brigade_wire::{Attempt, TaskId};

/// Where a task lives in the machine; reused after it is done, so always paired with its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskKey(u32);

impl TaskKey {
    pub(super) fn new(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than four billion tasks at a time"))
    }

    pub(super) fn index(self) -> usize {
        self.0 as usize
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
    pub(super) fn new(id: TaskId, task: T, retries: u32) -> Self {
        Self {
            id,
            task,
            attempt: Attempt::first(),
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
