//! The records of all tasks.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use brigade_base::{Attempt, Monotonic, Needs, TaskId};

use crate::entry::{RareAttributes, TaskEntry};
use crate::outbox::Removed;
use crate::slab::Slab;
use crate::task::{AGING, Constraints, Rank, Submission, TaskData, TaskKey, TaskRef};

/// The tasks with what few of them have beside them, so that this takes no room in the others.
#[derive(Debug)]
pub(crate) struct Entries<T> {
    entries: Slab<TaskEntry<T>>,
    rare: Slab<RareAttributes>,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self { entries: Slab::new(), rare: Slab::new() }
    }
}

impl<T> Index<TaskKey> for Entries<T> {
    type Output = TaskEntry<T>;

    #[inline]
    fn index(&self, key: TaskKey) -> &TaskEntry<T> {
        &self.entries[key.index()]
    }
}

impl<T> IndexMut<TaskKey> for Entries<T> {
    #[inline]
    fn index_mut(&mut self, key: TaskKey) -> &mut TaskEntry<T> {
        &mut self.entries[key.index()]
    }
}

impl<T> Entries<T> {
    /// Adds a task, which waits nowhere yet.
    #[inline]
    pub(crate) fn insert(&mut self, now: Monotonic, submission: Submission<T>) -> TaskKey {
        let Submission { task, items, retries, constraints } = submission;
        if items.is_none() && retries == 0 && constraints.is_none() {
            return match TaskEntry::new(task, now) {
                Ok(entry) => TaskKey::new(self.entries.insert(entry)),
                Err(task) => self.insert_with(task, RareAttributes::of(now)),
            };
        }
        let earlier = constraints.as_ref().map_or(0, |constraints| constraints.earlier_attempts);
        let attempt = Attempt::new(earlier.saturating_add(1));
        let rare = RareAttributes {
            attempt,
            items,
            retries_left: retries,
            constraints,
            ..RareAttributes::of(now)
        };
        self.insert_with(task, rare)
    }

    fn insert_with(&mut self, task: T, rare: RareAttributes) -> TaskKey {
        let index = self.insert_rare(rare);
        TaskKey::new(self.entries.insert(TaskEntry::with_rare(task, index)))
    }

    fn insert_rare(&mut self, rare: RareAttributes) -> u32 {
        // There are no more of them than tasks, so the index is within the range of a key's.
        TaskKey::new(self.rare.insert(rare)).raw() - 1
    }

    /// Splits off the items of a chunk from `at` on, as a task that waits nowhere yet.
    pub(crate) fn split_off(&mut self, key: TaskKey, at: u32, data: fn(&T, u32) -> T) -> TaskKey {
        let data = data(&self[key].task, at);
        let rest = self.rare_mut(key).split_off(at);
        self.insert_with(data, rest)
    }

    /// Removes a task.
    #[inline]
    pub(crate) fn remove(&mut self, key: TaskKey) -> Removed<T> {
        let entry = self.entries.remove(key.index());
        let rare = entry.rare().map(|index| self.rare.remove(index));
        let task = entry.task;
        match rare {
            Err(submitted) => Removed { task, attempt: Attempt::first(), items: 1, submitted },
            Ok(RareAttributes { attempt, items, submitted, .. }) => {
                Removed { task, attempt, items: items.map_or(1, NonZeroU32::get), submitted }
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: TaskKey) -> Option<&TaskEntry<T>> {
        self.entries.get(key.index())
    }

    /// Returns the keys of all tasks.
    pub(crate) fn keys(&self) -> impl Iterator<Item = TaskKey> {
        self.entries.all().map(|(index, _)| TaskKey::new(index))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    fn rare(&self, key: TaskKey) -> Option<&RareAttributes> {
        self[key].rare().ok().map(|index| &self.rare[index])
    }

    /// Returns what is rare about a task, to change it.
    pub(crate) fn rare_mut(&mut self, key: TaskKey) -> &mut RareAttributes {
        let index = match self[key].rare() {
            Ok(index) => index,
            Err(submitted) => {
                let index = self.insert_rare(RareAttributes::of(submitted));
                self[key].set_rare(index);
                index as usize
            }
        };
        &mut self.rare[index]
    }

    #[inline]
    pub(crate) fn constraints(&self, key: TaskKey) -> Option<&Constraints> {
        self.rare(key)?.constraints.as_deref()
    }

    #[inline]
    pub(crate) fn constraints_mut(&mut self, key: TaskKey) -> Option<&mut Constraints> {
        let index = self[key].rare().ok()?;
        self.rare[index].constraints.as_deref_mut()
    }

    /// Returns the time of submission.
    #[inline]
    pub(crate) fn submitted(&self, key: TaskKey) -> Monotonic {
        match self[key].rare() {
            Ok(index) => self.rare[index].submitted,
            Err(submitted) => submitted,
        }
    }

    #[inline]
    pub(crate) fn attempt(&self, key: TaskKey) -> Attempt {
        self.rare(key).map_or(Attempt::first(), |rare| rare.attempt)
    }

    /// Returns the number of items, if the task is a chunk of a map.
    #[inline]
    pub(crate) fn items(&self, key: TaskKey) -> Option<NonZeroU32> {
        self.rare(key)?.items
    }

    /// Returns the number of items of a chunk, and 1 for other tasks.
    #[inline]
    pub(crate) fn count(&self, key: TaskKey) -> u64 {
        self.items(key).map_or(1, |items| items.get().into())
    }

    pub(crate) fn retries_left(&self, key: TaskKey) -> u32 {
        self.rare(key).map_or(0, |rare| rare.retries_left)
    }

    /// Returns `true` if the task is a chunk whose items do not run again after a worker, because
    /// nobody wants them any more.
    pub(crate) fn is_cancelled(&self, key: TaskKey) -> bool {
        self.constraints(key).is_some_and(|constraints| constraints.cancelled)
    }

    #[inline]
    pub(crate) fn priority(&self, key: TaskKey) -> i32 {
        self.constraints(key).map_or(0, |constraints| constraints.priority)
    }

    /// Returns the resources that the task needs, unless only one worker may run it.
    pub(crate) fn needs(&self, key: TaskKey) -> Option<&Needs> {
        let constraints = self.constraints(key)?;
        constraints.needs.as_ref().filter(|_| constraints.slot.is_none())
    }

    /// Returns the only slot whose worker may run the task, if there is one.
    #[inline]
    pub(crate) fn slot(&self, key: TaskKey) -> Option<u32> {
        self.constraints(key).and_then(|constraints| constraints.slot)
    }
}

impl<T: TaskData> Entries<T> {
    #[inline]
    pub(crate) fn id(&self, key: TaskKey) -> TaskId {
        self[key].id()
    }

    /// Returns the key with the task's id.
    #[inline]
    pub(crate) fn reference(&self, key: TaskKey) -> TaskRef {
        TaskRef { key, id: self.id(key) }
    }

    /// Returns a task, unless it has ended.
    pub(crate) fn find(&self, task: TaskRef) -> Option<&TaskEntry<T>> {
        self.get(task.key).filter(|entry| entry.id() == task.id)
    }

    pub(crate) fn rank(&self, key: TaskKey) -> Rank {
        let head_start = i128::from(self.priority(key)) * AGING.as_nanos().cast_signed();
        (i128::from(self.submitted(key).as_nanos()) - head_start, self.id(key))
    }
}

#[cfg(test)]
impl<T> Entries<T> {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Panics if something rare has no task.
    pub(crate) fn check_rare(&self) {
        let owned = self.entries.iter().filter(|entry| entry.rare().is_ok()).count();
        assert_eq!(owned, self.rare.len(), "something rare has no task");
    }
}
