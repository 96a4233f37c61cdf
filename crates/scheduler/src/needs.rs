//! Tasks that need resources, and what those that run have taken.
//!
//! A task takes what it needs when it is sent to a worker, and gives it back when it leaves the
//! worker: when it has ended, waits again, or pauses. What a worker uses is free only when its
//! process is gone, so nothing is given back when it is killed, when its death is reported before,
//! or when the task was its last one. [`Lanes`] has the order.

use std::collections::BTreeMap;

use brigade_base::{Grant, Lanes, Ledger, Needs, Resource, WorkerId};

use crate::task::{Rank, TaskKey};

#[derive(Debug)]
pub(crate) struct ResourceTable {
    ledger: Ledger,
    lanes: Lanes<Rank, TaskKey>,
    /// By the number of the task's key.
    granted: BTreeMap<u32, Grant>,
    /// Grants that workers still have whose tasks have ended.
    left: Vec<(WorkerId, Grant)>,
    /// The task that leaves next, if there is enough left for one.
    first: Option<(Rank, TaskKey)>,
}

impl ResourceTable {
    pub(crate) fn new(resources: &[Resource]) -> Self {
        Self {
            ledger: Ledger::new(resources),
            lanes: Lanes::default(),
            granted: BTreeMap::new(),
            left: Vec::new(),
            first: None,
        }
    }

    /// Returns the number of tasks that wait, whether there is enough for them or not.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Returns the task that leaves next, if there is enough left for one.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Rank, TaskKey)> {
        self.first
    }

    /// Returns how many tasks could run now, up to `most`.
    pub(crate) fn ready(&self, most: usize) -> usize {
        if self.first.is_none() { 0 } else { self.lanes.ready(&self.ledger, most).len() }
    }

    /// Lets a task wait.
    pub(crate) fn wait(&mut self, needs: &Needs, rank: Rank, key: TaskKey) {
        self.lanes.insert(needs, rank, key);
        self.update();
    }

    /// Removes a task that waits, and its claim. Returns `true` if there is enough left for
    /// another.
    pub(crate) fn stop_waiting(&mut self, needs: &Needs, rank: Rank) -> bool {
        self.lanes.remove(needs, rank);
        self.update();
        self.first.is_some()
    }

    /// Removes and returns all tasks that wait.
    pub(crate) fn take_waiting(&mut self) -> Vec<TaskKey> {
        self.first = None;
        self.lanes.take_all()
    }

    /// Removes the [first](Self::first) task, which takes what it needs.
    pub(crate) fn begin(&mut self, needs: &Needs, rank: Rank, key: TaskKey) {
        self.lanes.remove(needs, rank);
        if let Some(grant) = self.ledger.take(needs) {
            self.granted.insert(key.raw(), grant);
        }
        self.update();
    }

    /// Takes back what a task has taken, if anything. Returns `true` if others wait.
    #[inline]
    pub(crate) fn give_back(&mut self, key: TaskKey) -> bool {
        if self.granted.is_empty() {
            return false;
        }
        let Some(grant) = self.granted.remove(&key.raw()) else { return false };
        self.ledger.give_back(grant);
        self.update();
        !self.lanes.is_empty()
    }

    /// Leaves what a task has taken, if anything, to its worker.
    pub(crate) fn leave_with(&mut self, worker: WorkerId, key: TaskKey) {
        let grant = self.granted.remove(&key.raw());
        self.left.extend(grant.map(|grant| (worker, grant)));
    }

    /// Takes back what was left to a worker. Returns `true` if others wait.
    pub(crate) fn give_back_of(&mut self, worker: WorkerId) -> bool {
        let mut has_any = false;
        for (_, grant) in self.left.extract_if(.., |(left_to, _)| *left_to == worker) {
            self.ledger.give_back(grant);
            has_any = true;
        }
        if has_any {
            self.update();
        }
        has_any && !self.lanes.is_empty()
    }

    /// Returns what a task has taken.
    #[inline]
    pub(crate) fn granted(&self, key: TaskKey) -> Option<&Grant> {
        if self.granted.is_empty() { None } else { self.granted.get(&key.raw()) }
    }

    fn update(&mut self) {
        self.first = self.lanes.ready(&self.ledger, 1).first().copied();
    }
}

#[cfg(test)]
impl ResourceTable {
    /// Returns what is left to workers.
    pub(crate) fn left(&self) -> Vec<(WorkerId, Needs)> {
        let needs = |grant: &Grant| grant.parts().map(|(need, _)| need).collect::<Vec<_>>();
        self.left.iter().map(|(worker, grant)| (*worker, needs(grant).into())).collect()
    }

    /// Panics if something taken is not with the task that runs and needs it. Returns the tasks
    /// that wait, with what they need.
    pub(crate) fn check<'a>(
        &self,
        resources: &[Resource],
        running: impl Iterator<Item = (TaskKey, &'a Needs)>,
    ) -> Vec<(TaskKey, Needs)> {
        let mut left: Vec<u64> = resources.iter().map(|resource| resource.total()).collect();
        let mut count = 0;
        for (key, needs) in running {
            let grant = self.granted(key).expect("a task runs without what it needs");
            assert!(grant.parts().map(|(need, _)| need).eq(needs.iter()), "it took something else");
            for need in needs.iter() {
                left[usize::from(need.resource)] -= need.amount;
            }
            count += 1;
        }
        assert_eq!(count, self.granted.len(), "a task that does not run has taken something");
        for (need, _) in self.left.iter().flat_map(|(_, grant)| grant.parts()) {
            left[usize::from(need.resource)] -= need.amount;
        }
        assert_eq!(left, self.ledger.left(), "what is taken and what is left are not all");
        assert_eq!(self.first, self.lanes.ready(&self.ledger, 1).first().copied());
        self.lanes.iter().map(|(needs, _, key)| (*key, needs.clone())).collect()
    }
}
