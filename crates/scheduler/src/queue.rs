//! The queue: first in, first out, with removal from the middle in constant time.
//!
//! Plain tasks are linked through their entries, so queueing a task allocates nothing and a
//! cancelled task leaves nothing behind. The few tasks with a priority are kept in the order of
//! their [`Rank`]. The better of the two front tasks leaves first.

use std::collections::BTreeMap;

use crate::slab::Slab;
use crate::task::{Rank, TaskEntry, TaskKey, TaskState};

#[derive(Debug, Default)]
pub(crate) struct Queue {
    first: Option<TaskKey>,
    last: Option<TaskKey>,
    /// Number of plain tasks.
    linked: usize,
    ranked: BTreeMap<Rank, TaskKey>,
}

impl Queue {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.linked + self.ranked.len()
    }

    #[inline]
    pub(crate) fn push_back<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        entry.state = TaskState::Queued;
        if entry.priority() != 0 {
            self.ranked.insert(entry.rank(), key);
            return;
        }
        entry.previous = self.last;
        entry.next = None;
        match self.last {
            Some(last) => tasks[last.index()].next = Some(key),
            None => self.first = Some(key),
        }
        self.last = Some(key);
        self.linked += 1;
    }

    /// Returns a task to the front of the queue.
    pub(crate) fn push_front<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        entry.state = TaskState::Queued;
        if entry.priority() != 0 {
            self.ranked.insert(entry.rank(), key);
            return;
        }
        entry.previous = None;
        entry.next = self.first;
        match self.first {
            Some(first) => tasks[first.index()].previous = Some(key),
            None => self.last = Some(key),
        }
        self.first = Some(key);
        self.linked += 1;
    }

    #[inline]
    pub(crate) fn pop_front<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>) -> Option<TaskKey> {
        let key = self.front(tasks)?;
        self.remove(tasks, key);
        Some(key)
    }

    /// Returns the task that leaves next.
    #[inline]
    pub(crate) fn front<T>(&self, tasks: &Slab<TaskEntry<T>>) -> Option<TaskKey> {
        match (self.first, self.ranked.first_key_value()) {
            (Some(plain), Some((rank, ranked))) => {
                Some(if *rank < tasks[plain.index()].rank() { *ranked } else { plain })
            }
            (plain, ranked) => plain.or(ranked.map(|(_, key)| *key)),
        }
    }

    /// Removes a task.
    #[inline]
    pub(crate) fn remove<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        debug_assert_eq!(entry.state, TaskState::Queued);
        if entry.priority() != 0 {
            self.ranked.remove(&entry.rank());
            return;
        }
        let (previous, next) = (entry.previous.take(), entry.next.take());
        match previous {
            Some(previous) => tasks[previous.index()].next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => tasks[next.index()].previous = previous,
            None => self.last = previous,
        }
        self.linked -= 1;
    }

    /// Returns all keys, for `sanity_check`.
    #[cfg(test)]
    pub(crate) fn iter<'a, T>(
        &'a self,
        tasks: &'a Slab<TaskEntry<T>>,
    ) -> impl Iterator<Item = TaskKey> + use<'a, T> {
        let linked = std::iter::successors(self.first, |key| tasks[key.index()].next);
        linked.chain(self.ranked.values().copied())
    }
}
