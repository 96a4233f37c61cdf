//! All tasks of the scheduler, and the order in which the waiting ones leave.
//!
//! A task waits in the queue, for the only worker that may run it, or for resources that it needs.
//! Whoever leaves its worker, for whatever reason, gives back what it has taken. Where it
//! waits and what its `state` says are changed together, here.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

use brigade_base::{Grant, Monotonic, Resource, WorkerId};

use crate::entries::Entries;
use crate::entry::EntryState;
use crate::needs::ResourceTable;
use crate::outbox::Removed;
use crate::queue::Queue;
use crate::task::{Rank, Submission, TaskData, TaskKey};

#[derive(Debug)]
pub(crate) struct Tasks<T> {
    entries: Entries<T>,
    queue: Queue,
    /// For each slot, the tasks that only its worker may run, in order of submission.
    reserved: Vec<VecDeque<TaskKey>>,
    /// Number of tasks in `reserved`.
    reserved_len: usize,
    /// Tasks that need resources, and what those that run have taken.
    resources: ResourceTable,
    /// Number of tasks that wait for the time of their next attempt.
    paused: usize,
    /// Number of all tasks; items count one by one.
    pending: u64,
    /// `true` if a task may wait that did not at the last conclusion.
    arrived: bool,
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
    pub(crate) fn new(resources: &[Resource]) -> Self {
        Self {
            entries: Entries::default(),
            queue: Queue::default(),
            reserved: Vec::new(),
            reserved_len: 0,
            resources: ResourceTable::new(resources),
            paused: 0,
            pending: 0,
            arrived: false,
        }
    }

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
        self.give_back(key);
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
        match self.constraints(key).map(|it| (it.slot, it.needs.is_some())) {
            None | Some((None, false)) => self.queue.push_back(&mut self.entries, key),
            Some((Some(slot), _)) => self.reserve(key, slot).push_back(key),
            Some((None, true)) => self.wait_for_resources(key),
        }
    }

    /// Lets a task wait before all others.
    pub(crate) fn wait_at_the_front(&mut self, key: TaskKey) {
        self.arrived = true;
        match self.constraints(key).map(|it| (it.slot, it.needs.is_some())) {
            None | Some((None, false)) => self.queue.push_front(&mut self.entries, key),
            Some((Some(slot), _)) => self.reserve(key, slot).push_front(key),
            Some((None, true)) => self.wait_for_resources(key),
        }
    }

    /// Lets a task wait until it may take what it needs, in the order of submission.
    fn wait_for_resources(&mut self, key: TaskKey) {
        self.give_back(key);
        self.entries[key].reserve();
        let rank = self.rank(key);
        if let Some(needs) = self.entries.needs(key) {
            self.resources.wait(needs, rank, key);
        }
    }

    #[inline]
    fn give_back(&mut self, key: TaskKey) {
        self.arrived |= self.resources.give_back(key);
    }

    /// Leaves what a task has taken to its worker, whose process still uses it.
    pub(crate) fn leave_with(&mut self, worker: WorkerId, key: TaskKey) {
        self.resources.leave_with(worker, key);
    }

    /// Gives back what was left to a worker.
    pub(crate) fn give_back_of(&mut self, worker: WorkerId) {
        self.arrived |= self.resources.give_back_of(worker);
    }

    /// Returns what a task that runs has taken of the resources.
    #[inline]
    pub(crate) fn granted(&self, key: TaskKey) -> Option<&Grant> {
        self.resources.granted(key)
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

    /// Removes and returns the first task that any worker may take, which takes what it needs.
    #[inline]
    pub(crate) fn next_queued(&mut self) -> Option<TaskKey> {
        if let Some((rank, key)) = self.first_with_needs() {
            if let Some(needs) = self.entries.needs(key) {
                self.resources.begin(needs, rank, key);
            }
            return Some(key);
        }
        self.queue.pop_front(&mut self.entries)
    }

    /// Returns the first task that any worker may take.
    #[inline]
    pub(crate) fn first_queued(&self) -> Option<TaskKey> {
        match self.first_with_needs() {
            Some((_, key)) => Some(key),
            None => self.queue.front(&self.entries),
        }
    }

    /// Returns the first task with needs, if it may begin, and before those in the queue.
    #[inline]
    fn first_with_needs(&self) -> Option<(Rank, TaskKey)> {
        let first = self.resources.first()?;
        let other = self.queue.front(&self.entries);
        other.is_none_or(|other| first.0 < self.rank(other)).then_some(first)
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
            (EntryState::Queued, _) => self.queue.remove(&mut self.entries, key),
            (EntryState::Reserved, Some(slot)) => {
                self.reserved[slot as usize].retain(|other| *other != key);
                self.reserved_len -= 1;
            }
            (EntryState::Paused, _) => self.paused -= 1,
            (EntryState::Reserved, None) => {
                let rank = self.rank(key);
                if let Some(needs) = self.entries.needs(key) {
                    self.arrived |= self.resources.stop_waiting(needs, rank);
                }
            }
            (EntryState::Assigned { .. }, _) => {}
        }
    }

    /// Lets a task wait for the time of its next attempt.
    pub(crate) fn pause(&mut self, key: TaskKey) {
        self.give_back(key);
        self[key].pause();
        self.paused += 1;
    }

    /// Removes and returns all tasks that wait, for a worker or for their next attempt.
    pub(crate) fn take_waiting(&mut self) -> Vec<TaskKey> {
        let mut all = Vec::with_capacity(self.unassigned());
        if std::mem::take(&mut self.paused) > 0 {
            let is_paused = |key: &TaskKey| self.entries[*key].state() == EntryState::Paused;
            all.extend(self.entries.keys().filter(is_paused));
        }
        while let Some(key) = self.queue.pop_front(&mut self.entries) {
            all.push(key);
        }
        all.extend(self.resources.take_waiting());
        all.extend(self.reserved.iter_mut().flat_map(|list| list.drain(..)));
        self.reserved_len = 0;
        all
    }

    /// Returns the number of tasks that wait for a worker. Of those that need resources, it counts
    /// the one that leaves next.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.queued() + self.reserved_len
    }

    /// Returns the number of tasks that wait, for a worker, for resources, or for their next
    /// attempt.
    #[inline]
    pub(crate) fn unassigned(&self) -> usize {
        self.queue.len() + self.resources.len() + self.reserved_len + self.paused
    }

    #[inline]
    pub(crate) fn take_arrived(&mut self) -> bool {
        std::mem::take(&mut self.arrived)
    }

    /// Returns the number of tasks that any worker may take. Of those that need resources, it
    /// counts the one that leaves next.
    #[inline]
    pub(crate) fn queued(&self) -> usize {
        self.queue.len() + usize::from(self.resources.first().is_some())
    }

    /// Returns the number of tasks that could run now if there were workers, up to `most`.
    pub(crate) fn could_run(&self, most: usize) -> usize {
        let queued = self.queue.len().min(most);
        queued + self.resources.ready(most - queued)
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
    pub(crate) fn check_waiting(&self, resources: &[Resource]) -> usize {
        let queued: Vec<_> = self.queue.iter(&self.entries).collect();
        assert_eq!(queued.len(), self.queue.len(), "the queue's length is wrong");
        for key in &queued {
            assert_eq!(self[*key].state(), EntryState::Queued);
        }
        let mut reserved = 0;
        for (slot, list) in (0..).zip(&self.reserved) {
            for key in list {
                let place = (self[*key].state(), self.slot(*key));
                assert_eq!(place, (EntryState::Reserved, Some(slot)));
                reserved += 1;
            }
        }
        assert_eq!(reserved, self.reserved_len, "the count of reserved tasks is wrong");
        let is_paused = |key: &TaskKey| self[*key].state() == EntryState::Paused;
        let has_alarm = |key| self.constraints(key).is_some_and(|it| it.alarm.is_some());
        assert!(self.keys().filter(is_paused).all(has_alarm), "a task is paused forever");
        let paused = self.keys().filter(is_paused).count();
        assert_eq!(paused, self.paused, "the count of paused tasks is wrong");
        queued.len() + reserved + paused + self.check_needs(resources)
    }

    /// Returns what is left to workers.
    pub(crate) fn left(&self) -> Vec<(WorkerId, brigade_base::Needs)> {
        self.resources.left()
    }

    fn check_needs(&self, resources: &[Resource]) -> usize {
        let is_assigned = |key: &TaskKey| matches!(self[*key].state(), EntryState::Assigned { .. });
        let with_needs = |key| Some((key, self.entries.needs(key)?));
        let running = self.keys().filter(is_assigned).filter_map(with_needs);
        let waiting = self.resources.check(resources, running);
        for (key, needs) in &waiting {
            assert_eq!(self[*key].state(), EntryState::Reserved);
            assert_eq!(self.entries.needs(*key), Some(needs));
        }
        waiting.len()
    }
}
