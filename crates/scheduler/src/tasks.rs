//! All tasks of the scheduler, and the order in which the waiting ones leave.
//!
//! A task waits in the queue, or for the only worker that may run it. Where it waits and what its
//! `state` says are changed together, here.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use brigade_time::Monotonic;

use crate::entries::{Entries, Removed};
use crate::entry::TaskState;
use crate::queue::Queue;
use crate::task::{Submission, TaskData, TaskKey};

#[derive(Debug)]
pub(crate) struct Tasks<T> {
    entries: Entries<T>,
    queue: Queue,
    /// For each slot, the tasks that only its worker may run, in order of submission.
    reserved: Vec<VecDeque<TaskKey>>,
    /// Number of tasks in `reserved`.
    reserved_len: usize,
    /// Number of tasks that wait for the time of their next attempt.
    paused: usize,
    /// Number of all tasks; items count one by one.
    pending: u64,
    /// `true` if a task may wait that did not at the last conclusion.
    arrived: bool,
}

impl<T> Default for Tasks<T> {
    fn default() -> Self {
        Self {
            entries: Entries::default(),
            queue: Queue::default(),
            reserved: Vec::new(),
            reserved_len: 0,
            paused: 0,
            pending: 0,
            arrived: false,
        }
    }
}

impl<T> Deref for Tasks<T> {
    type Target = Entries<T>;

    #[inline]
    fn deref(&self) -> &Entries<T> {
        &self.entries
    }
}

impl<T> DerefMut for Tasks<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Entries<T> {
        &mut self.entries
    }
}

impl<T: TaskData> Tasks<T> {
    /// Adds a task, which waits nowhere yet.
    #[inline]
    pub(crate) fn insert(&mut self, now: Monotonic, submission: Submission<T>) -> TaskKey {
        let key = self.entries.insert(now, submission);
        self.pending += self.count(key);
        key
    }

    /// Removes a task that does not wait.
    #[inline]
    pub(crate) fn remove(&mut self, key: TaskKey) -> Removed<T> {
        let removed = self.entries.remove(key);
        self.pending -= u64::from(removed.items);
        removed
    }

    /// Returns the number of all tasks; items count one by one.
    #[inline]
    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    /// Lets a task wait behind all others.
    #[inline]
    pub(crate) fn wait_at_the_end(&mut self, key: TaskKey) {
        self.arrived = true;
        match self.slot(key) {
            None => self.queue.push_back(&mut self.entries, key),
            Some(slot) => self.reserve(key, slot).push_back(key),
        }
    }

    /// Lets a task wait before all others.
    pub(crate) fn wait_at_the_front(&mut self, key: TaskKey) {
        self.arrived = true;
        match self.slot(key) {
            None => self.queue.push_front(&mut self.entries, key),
            Some(slot) => self.reserve(key, slot).push_front(key),
        }
    }

    fn reserve(&mut self, key: TaskKey, slot: u32) -> &mut VecDeque<TaskKey> {
        self[key].reserve();
        self.reserved_len += 1;
        let slot = slot as usize;
        if self.reserved.len() <= slot {
            self.reserved.resize_with(slot + 1, VecDeque::new);
        }
        &mut self.reserved[slot]
    }

    /// Removes and returns the first task of the queue.
    #[inline]
    pub(crate) fn next_queued(&mut self) -> Option<TaskKey> {
        self.queue.pop_front(&mut self.entries)
    }

    /// Returns the first task of the queue.
    #[inline]
    pub(crate) fn first_queued(&self) -> Option<TaskKey> {
        self.queue.front(&self.entries)
    }

    /// Removes and returns the first task that waits for the worker of this slot.
    pub(crate) fn next_reserved(&mut self, slot: u32) -> Option<TaskKey> {
        let key = self.reserved.get_mut(slot as usize)?.pop_front()?;
        self.reserved_len -= 1;
        Some(key)
    }

    /// Takes a task out of the queue, or from the list of its worker. Does nothing if it does not
    /// wait.
    pub(crate) fn stop_waiting(&mut self, key: TaskKey) {
        match (self[key].state(), self.slot(key)) {
            (TaskState::Queued, _) => self.queue.remove(&mut self.entries, key),
            (TaskState::Reserved, Some(slot)) => {
                self.reserved[slot as usize].retain(|other| *other != key);
                self.reserved_len -= 1;
            }
            (TaskState::Paused, _) => self.paused -= 1,
            (TaskState::Reserved, None) | (TaskState::Assigned { .. }, _) => {}
        }
    }

    /// Lets a task wait for the time of its next attempt.
    pub(crate) fn pause(&mut self, key: TaskKey) {
        self[key].pause();
        self.paused += 1;
    }

    /// Removes and returns all tasks that wait, for a worker or for their next attempt.
    pub(crate) fn take_waiting(&mut self) -> Vec<TaskKey> {
        let mut all = Vec::with_capacity(self.unassigned());
        if std::mem::take(&mut self.paused) > 0 {
            let is_paused = |key: &TaskKey| self.entries[*key].state() == TaskState::Paused;
            all.extend(self.entries.keys().filter(is_paused));
        }
        while let Some(key) = self.next_queued() {
            all.push(key);
        }
        all.extend(self.reserved.iter_mut().flat_map(|list| list.drain(..)));
        self.reserved_len = 0;
        all
    }

    /// Returns the number of tasks that wait for a worker.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len() + self.reserved_len
    }

    /// Returns the number of tasks that wait, for a worker or for their next attempt.
    #[inline]
    pub(crate) fn unassigned(&self) -> usize {
        self.waiting() + self.paused
    }

    #[inline]
    pub(crate) fn take_arrived(&mut self) -> bool {
        std::mem::take(&mut self.arrived)
    }

    /// Returns the number of tasks that any worker may take.
    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns `true` if a task waits for the worker of this slot.
    pub(crate) fn is_reserved(&self, slot: u32) -> bool {
        self.reserved.get(slot as usize).is_some_and(|list| !list.is_empty())
    }
}

#[cfg(test)]
impl<T: TaskData> Tasks<T> {
    /// Panics if the places of waiting tasks are not those of the lists. Returns the number of
    /// waiting tasks.
    pub(crate) fn check_waiting(&self) -> usize {
        let queued: Vec<_> = self.queue.iter(&self.entries).collect();
        assert_eq!(queued.len(), self.queue.len(), "the queue's length is wrong");
        for key in &queued {
            assert_eq!(self[*key].state(), TaskState::Queued);
        }
        let mut reserved = 0;
        for (slot, list) in (0..).zip(&self.reserved) {
            for key in list {
                let place = (self[*key].state(), self.slot(*key));
                assert_eq!(place, (TaskState::Reserved, Some(slot)));
                reserved += 1;
            }
        }
        assert_eq!(reserved, self.reserved_len, "the count of reserved tasks is wrong");
        let is_paused = |key: &TaskKey| self[*key].state() == TaskState::Paused;
        let has_alarm = |key| self.constraints(key).is_some_and(|it| it.alarm.is_some());
        assert!(self.keys().filter(is_paused).all(has_alarm), "a task is paused forever");
        let paused = self.keys().filter(is_paused).count();
        assert_eq!(paused, self.paused, "the count of paused tasks is wrong");
        queued.len() + reserved + paused
    }
}
