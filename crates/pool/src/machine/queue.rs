//! The queue: first in, first out, with removal from the middle in constant time.
//!
//! The links are in the task entries themselves, so queueing a task allocates nothing and a
//! cancelled task leaves nothing behind.

use slab::Slab;

use super::task::{Place, TaskEntry, TaskKey};

#[derive(Debug, Default)]
pub(super) struct Queue {
    first: Option<TaskKey>,
    last: Option<TaskKey>,
    len: usize,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push_back<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        entry.place = Place::Queued;
        entry.previous = self.last;
        entry.next = None;
        match self.last {
            Some(last) => tasks[last.index()].next = Some(key),
            None => self.first = Some(key),
        }
        self.last = Some(key);
        self.len += 1;
    }

    pub(super) fn push_front<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        entry.place = Place::Queued;
        entry.previous = None;
        entry.next = self.first;
        match self.first {
            Some(first) => tasks[first.index()].previous = Some(key),
            None => self.last = Some(key),
        }
        self.first = Some(key);
        self.len += 1;
    }

    pub(super) fn pop_front<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>) -> Option<TaskKey> {
        let key = self.first?;
        self.remove(tasks, key);
        Some(key)
    }

    /// Unlinks a queued task.
    pub(super) fn remove<T>(&mut self, tasks: &mut Slab<TaskEntry<T>>, key: TaskKey) {
        let entry = &mut tasks[key.index()];
        debug_assert_eq!(entry.place, Place::Queued);
        let (previous, next) = (entry.previous.take(), entry.next.take());
        match previous {
            Some(previous) => tasks[previous.index()].next = next,
            None => self.first = next,
        }
        match next {
            Some(next) => tasks[next.index()].previous = previous,
            None => self.last = previous,
        }
        self.len -= 1;
    }

    /// The keys from first to last, for `sanity_check`.
    pub(super) fn iter<'a, T>(
        &self,
        tasks: &'a Slab<TaskEntry<T>>,
    ) -> impl Iterator<Item = TaskKey> + use<'a, T> {
        std::iter::successors(self.first, |key| tasks[key.index()].next)
    }
}
