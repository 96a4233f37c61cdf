//! All worker slots, and the list of those whose worker is idle.

use std::ops::{Index, IndexMut};

use brigade_base::WorkerId;

use crate::TaskKey;
use crate::worker::{WorkerEntry, WorkerState};

#[derive(Debug)]
pub(crate) struct Workers {
    /// Slots from `target` on get no new worker.
    entries: Vec<WorkerEntry>,
    /// The maximum number of workers, including spare ones.
    target: usize,
    /// Number of spare ones among them.
    spare: usize,
    /// The worker that has been idle for longest gets the next task.
    takes_turns: bool,
    /// Slots whose worker is ready and idle, in the order in which they became so.
    idle: Vec<u32>,
    /// Number of workers that are ready for tasks.
    ready: usize,
    /// The slot whose worker was assigned the last task.
    current: usize,
    /// Number of workers that have unanswered frames.
    busy: usize,
    /// `true` if a worker may have more room than at the last conclusion.
    freed: bool,
    /// `true` if there may be other workers than at the last conclusion, or others are wanted.
    changed: bool,
}

impl Index<usize> for Workers {
    type Output = WorkerEntry;

    #[inline]
    fn index(&self, index: usize) -> &WorkerEntry {
        &self.entries[index]
    }
}

impl IndexMut<usize> for Workers {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut WorkerEntry {
        &mut self.entries[index]
    }
}

impl Workers {
    /// Creates vacant slots for workers that may have tasks, and for spare ones beside them.
    pub(crate) fn new(workers: usize, spare: usize, takes_turns: bool) -> Self {
        let mut all = Self {
            entries: Vec::new(),
            target: 0,
            spare,
            takes_turns,
            idle: Vec::new(),
            ready: 0,
            current: 0,
            busy: 0,
            freed: false,
            changed: true,
        };
        all.resize(workers);
        all
    }

    /// Returns the number of slots, including those from the maximum number of workers on.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &WorkerEntry> {
        self.entries.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WorkerEntry> {
        self.entries.iter_mut()
    }

    /// Returns the slots that may have a worker.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &WorkerEntry> {
        self.entries.iter().take(self.target)
    }

    pub(crate) fn wanted_mut(&mut self) -> impl Iterator<Item = &mut WorkerEntry> {
        self.entries.iter_mut().take(self.target)
    }

    /// Returns the maximum number of workers, including spare ones.
    #[inline]
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// Returns the number of workers that may have tasks at a time.
    #[inline]
    pub(crate) fn at_work(&self) -> usize {
        self.target - self.spare
    }

    /// Returns the number of idle or new workers that may get a task now, if there are as many.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        // Without spare workers, each worker may have tasks, also those that a smaller pool still
        // has.
        if self.spare == 0 { usize::MAX } else { self.at_work().saturating_sub(self.busy) }
    }

    /// Sets the number of workers that may have tasks at a time. Slots are added, but never
    /// removed.
    pub(crate) fn resize(&mut self, workers: usize) {
        let target = workers.saturating_add(self.spare);
        for slot in self.entries.len()..target {
            #[expect(clippy::expect_used, reason = "a pool has at most some thousand slots")]
            let slot = u32::try_from(slot).expect("slots are few");
            self.entries.push(WorkerEntry::vacant(slot));
        }
        self.target = target;
        self.changed = true;
    }

    /// Moves a worker to another state.
    pub(crate) fn set_state(&mut self, slot: u32, state: WorkerState) {
        let entry = &mut self.entries[slot as usize];
        self.ready -= usize::from(entry.state == WorkerState::Ready);
        self.ready += usize::from(state == WorkerState::Ready);
        entry.state = state;
        self.changed = true;
    }

    /// Prepares a vacant slot for a new process.
    pub(crate) fn begin_start(&mut self, slot: usize, credit: u16) -> WorkerId {
        self.changed = true;
        self.entries[slot].begin_start(credit)
    }

    /// Returns the entry of a worker, unless its slot has another generation by now.
    #[inline]
    pub(crate) fn live(&self, worker: WorkerId) -> Option<&WorkerEntry> {
        self.entries
            .get(worker.slot as usize)
            .filter(|entry| entry.id == worker && entry.state != WorkerState::Vacant)
    }

    #[inline]
    pub(crate) fn live_mut(&mut self, worker: WorkerId) -> Option<&mut WorkerEntry> {
        self.entries
            .get_mut(worker.slot as usize)
            .filter(|entry| entry.id == worker && entry.state != WorkerState::Vacant)
    }

    /// Returns the slot whose worker was assigned the last task.
    #[inline]
    pub(crate) fn current(&self) -> &WorkerEntry {
        &self.entries[self.current]
    }

    /// Returns all slots, from the one after the current one on.
    pub(crate) fn after_current(&self) -> impl Iterator<Item = &WorkerEntry> {
        let (before, after) = self.entries.split_at(self.current + 1);
        after.iter().chain(before)
    }

    #[inline]
    pub(crate) fn set_current(&mut self, slot: u32) {
        self.current = slot as usize;
    }

    /// Assigns a task to a worker and returns its position in the worker's table.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32, key: TaskKey) -> u16 {
        let worker = &mut self.entries[slot as usize];
        self.busy += usize::from(worker.load() == 0);
        worker.push(key)
    }

    /// Removes the oldest frame of a worker, which has answered it.
    #[inline]
    pub(crate) fn pop_front(&mut self, slot: u32) {
        let worker = &mut self.entries[slot as usize];
        worker.pop_front();
        self.busy -= usize::from(worker.load() == 0);
        self.freed = true;
    }

    /// Removes all frames of a worker, which is dead, and returns those that were not revoked.
    pub(crate) fn take_assigned(&mut self, slot: u32) -> Vec<(u16, TaskKey)> {
        let worker = &mut self.entries[slot as usize];
        self.busy -= usize::from(worker.load() > 0);
        worker.take_assigned()
    }

    /// Returns the number of workers that have unanswered frames.
    #[inline]
    pub(crate) fn busy(&self) -> usize {
        self.busy
    }

    /// Returns the number of workers that are ready for tasks.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// Returns the slots of idle workers that may get a task.
    #[inline]
    pub(crate) fn free(&self) -> &[u32] {
        if self.room() == 0 { &[] } else { &self.idle }
    }

    /// Returns the slots of idle workers. The first one has been idle for longest.
    #[inline]
    pub(crate) fn idle(&self) -> &[u32] {
        &self.idle
    }

    pub(crate) fn add_idle(&mut self, slot: u32) {
        self.idle.push(slot);
        self.freed = true;
    }

    /// Removes and returns the slot of an idle worker, if one may get a task: the one that was
    /// used last, because its caches are warm. Of workers that never had a task it is the oldest
    /// one, because a process that has just been forked may not have run yet. So may the copy of a
    /// worker that runs its tasks in copies.
    #[inline]
    pub(crate) fn take_free(&mut self) -> Option<u32> {
        if self.room() == 0 || self.idle.is_empty() {
            return None;
        }
        let is_used = |slot: &u32| self.entries[*slot as usize].completed > 0;
        let warm = if self.takes_turns { None } else { self.idle.iter().rposition(is_used) };
        Some(self.idle.remove(warm.unwrap_or(0)))
    }

    pub(crate) fn remove_idle(&mut self, slot: u32) {
        self.idle.retain(|idle| *idle != slot);
    }

    /// Returns `true` if every slot has a ready worker, so that none has to be started.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        self.ready == self.target
    }

    /// Lets the next conclusion look at everything that depends on the workers.
    pub(crate) fn set_changed(&mut self) {
        self.changed = true;
    }

    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    #[inline]
    pub(crate) fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.freed)
    }
}
