//! The queue: first in, first out, with removal from the middle in constant time.
//!
//! Plain tasks are in an intrusive list, linked through their entries. So queueing a task allocates
//! nothing and a cancelled task leaves nothing behind. The few tasks with a priority are kept in
//! the order of their [`Rank`]. The better of the two front tasks leaves first.

use std::collections::BTreeMap;

use crate::entries::Entries;
use crate::entry::EntryState;
use crate::task::{Rank, TaskData, TaskKey};

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
    pub(crate) fn push_back<T: TaskData>(&mut self, tasks: &mut Entries<T>, key: TaskKey) {
        if tasks.priority(key) != 0 {
            return self.rank(tasks, key);
        }
        tasks[key].queue(self.last, None);
        match self.last {
            Some(last) => tasks[last].set_behind(Some(key)),
            None => self.first = Some(key),
        }
        self.last = Some(key);
        self.linked += 1;
    }

    /// Returns a task to the front of the queue.
    pub(crate) fn push_front<T: TaskData>(&mut self, tasks: &mut Entries<T>, key: TaskKey) {
        if tasks.priority(key) != 0 {
            return self.rank(tasks, key);
        }
        tasks[key].queue(None, self.first);
        match self.first {
            Some(first) => tasks[first].set_before(Some(key)),
            None => self.last = Some(key),
        }
        self.first = Some(key);
        self.linked += 1;
    }

    fn rank<T: TaskData>(&mut self, tasks: &mut Entries<T>, key: TaskKey) {
        tasks[key].queue(None, None);
        self.ranked.insert(tasks.rank(key), key);
    }

    #[inline]
    pub(crate) fn pop_front<T: TaskData>(&mut self, tasks: &mut Entries<T>) -> Option<TaskKey> {
        let key = self.front(tasks)?;
        self.remove(tasks, key);
        Some(key)
    }

    /// Returns the task that leaves next.
    #[inline]
    pub(crate) fn front<T: TaskData>(&self, tasks: &Entries<T>) -> Option<TaskKey> {
        match (self.first, self.ranked.first_key_value()) {
            (Some(plain), Some((rank, ranked))) => {
                Some(if *rank < tasks.rank(plain) { *ranked } else { plain })
            }
            (plain, ranked) => plain.or(ranked.map(|(_, key)| *key)),
        }
    }

    /// Removes a task.
    #[inline]
    pub(crate) fn remove<T: TaskData>(&mut self, tasks: &mut Entries<T>, key: TaskKey) {
        debug_assert_eq!(tasks[key].state(), EntryState::Queued);
        if tasks.priority(key) != 0 {
            self.ranked.remove(&tasks.rank(key));
            return;
        }
        let (before, behind) = tasks[key].neighbors();
        match before {
            Some(before) => tasks[before].set_behind(behind),
            None => self.first = behind,
        }
        match behind {
            Some(behind) => tasks[behind].set_before(before),
            None => self.last = before,
        }
        self.linked -= 1;
    }

    /// Returns all keys, for `sanity_check`.
    #[cfg(test)]
    pub(crate) fn iter<'a, T>(
        &'a self,
        tasks: &'a Entries<T>,
    ) -> impl Iterator<Item = TaskKey> + use<'a, T> {
        let linked = std::iter::successors(self.first, |key| tasks[*key].neighbors().1);
        linked.chain(self.ranked.values().copied())
    }
}
