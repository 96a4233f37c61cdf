//! Moves prefetched tasks to workers that are idle: work stealing, on which the scheduler decides.

use brigade_base::Monotonic;

use crate::{Outbox, RevokeWhy, Scheduler, TaskData, TaskKey};

impl<T: TaskData> Scheduler<T> {
    /// Moves prefetched tasks to idle workers.
    pub(crate) fn balance(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if self.workers.is_complete() && self.workers.free().is_empty() {
            return;
        }
        let stolen = !self.workers.free().is_empty() && self.steal_for_the_idle(outbox);
        let waits = |index| self.newest_prefetched(index).is_some();
        if !stolen && (0..self.workers.len()).any(waits) {
            self.plan_rescue(now, outbox);
        }
    }

    /// Revokes the newest task of the most loaded worker for an idle one. The next follows when
    /// that task is finished. Short tasks stay where they are, unless their worker is known to make
    /// no progress.
    fn steal_for_the_idle(&self, outbox: &mut Outbox<T>) -> bool {
        let short = self.run_times.are_short();
        let victims = (0..self.workers.len()).filter_map(|index| {
            if short && !self.workers[index].stalled {
                return None;
            }
            Some((&self.workers[index], self.newest_prefetched(index)?))
        });
        let victim = victims.max_by_key(|(victim, _)| victim.tasks());
        if let Some((victim, task)) = victim {
            self.revoke(victim.id, task, RevokeWhy::Steal, outbox);
        }
        victim.is_some()
    }

    /// Returns the newest prefetched task of a worker that another worker may run.
    pub(crate) fn newest_prefetched(&self, index: usize) -> Option<(u16, TaskKey)> {
        let worker = &self.workers[index];
        if !worker.may_lose_tasks() || worker.tasks() < 2 {
            return None;
        }
        let tasks = worker.assigned().rev();
        tasks.take(worker.tasks() - 1).find(|(_, key)| self.is_movable(*key))
    }

    /// Returns `true` if any worker may run the task.
    pub(crate) fn is_movable(&self, key: TaskKey) -> bool {
        self.tasks.slot(key).is_none()
    }
}
