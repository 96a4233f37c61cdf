//! Packs tasks that are shorter than a wake-up, and takes them back from a worker that stalls.
//!
//! Short tasks go to the worker that is already awake, even if another one is idle, because waking
//! that one would take longer.
//!
//! A task is prefetched or packed in the expectation that the task before it is as short as usual.
//! While another worker is idle, or could be started, the *rescue* checks that. It finds within two
//! milliseconds that a worker makes no progress, or has far more tasks than it would be sent now,
//! and takes back the tasks that wait there. The queue then asks for processes as for any other
//! task.

use std::time::Duration;

use brigade_base::Monotonic;

use crate::alarms::{PoolAlarm, RescuePlan};
use crate::prefetch::FEW;
use crate::{Outbox, RevokeWhy, Scheduler, TaskData};

/// Number of short tasks that one worker gets before the next worker gets any: a quarter of the
/// work that is kept in a link, but at least and at most this many. While tasks do next to nothing,
/// the host cannot keep more than one worker busy, and others would only take its cores.
const MIN_PACKED: usize = 64;
const MAX_PACKED: usize = 256;

/// Interval at which workers are checked for progress while they have prefetched tasks.
const RESCUE_INTERVAL: Duration = Duration::from_millis(1);

/// A worker has to give tasks back once it has this many times its depth; the depth varies a little
/// all the time.
const FAR_BEYOND: usize = 2;

impl<T: TaskData> Scheduler<T> {
    /// Returns the number of short tasks that one worker gets before the next worker gets any.
    #[inline]
    pub(crate) fn pack(&self) -> usize {
        (self.run_times.depth() / 4).clamp(MIN_PACKED, MAX_PACKED)
    }

    /// Returns the worker that was assigned the last task if it should get short tasks even though
    /// another worker is idle.
    #[inline]
    pub(crate) fn take_awake_worker(
        &mut self,
        now: Monotonic,
        outbox: &mut Outbox<T>,
    ) -> Option<u32> {
        if !self.run_times.are_short() || self.workers.free().is_empty() {
            return None;
        }
        let worker = self.workers.current();
        let most = self.pack().min(self.settings.credit.into());
        if !worker.may_prefetch() || !(1..most).contains(&worker.load()) {
            return None;
        }
        let slot = worker.id.slot;
        self.plan_rescue(now, outbox);
        Some(slot)
    }

    /// Plans a check for progress after tasks were prefetched. If one is already due, the caller
    /// makes it, so that the driver need not wake up.
    pub(crate) fn plan_rescue(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        match &mut self.rescue {
            None => self.rescue_later(now, true),
            Some(plan) => {
                plan.packed = true;
                if plan.due <= now {
                    self.rescue(now, outbox);
                }
            }
        }
    }

    fn rescue_later(&mut self, now: Monotonic, first: bool) {
        let due = now.saturating_add(RESCUE_INTERVAL);
        self.rescue = Some(RescuePlan { due, packed: false, first });
        self.alarms.set_pool(PoolAlarm::Rescue, Some(due));
    }

    /// Revokes tasks that wait behind a task that turned out not to be short, if another worker is
    /// idle or can be started.
    pub(crate) fn rescue(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        let Some(plan) = self.rescue.take_if(|plan| plan.due <= now) else { return };
        self.alarms.set_pool(PoolAlarm::Rescue, None);
        let wanted = !self.workers.free().is_empty() || self.has_vacancy();
        // Submitters that packed tasks since the last check will most likely go on. Planning a new
        // check each time would wake the driver each time.
        let mut goes_on = plan.packed || plan.first;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            let progress = worker.completed != worker.completed_at_rescue;
            worker.completed_at_rescue = worker.completed;
            if plan.first {
                continue;
            }
            worker.stalled = !progress && worker.is_at_work();
            let stalled = worker.stalled;
            if (wanted || stalled) && self.newest_prefetched(index).is_some() {
                // While tasks are known to be long, few are prefetched, and balancing moves them.
                goes_on |= wanted || self.depth() > FEW;
                if wanted {
                    self.take_back(index, outbox);
                }
            }
        }
        if goes_on {
            self.rescue_later(now, false);
        }
    }

    /// Revokes the tasks that, as far as is known now, the worker should not have been sent.
    fn take_back(&mut self, index: usize, outbox: &mut Outbox<T>) {
        let (depth, tasks) = (self.depth(), self.workers[index].tasks());
        let count = match self.workers.free().last() {
            // It may not have started even the first one, which an idle worker starts at once.
            Some(idle) if self.workers[index].stalled => {
                let idle = *idle;
                if self.workers.current().id.slot as usize == index {
                    self.workers.set_current(idle);
                }
                tasks
            }
            None if self.workers[index].stalled => tasks - 1,
            _ if tasks > FAR_BEYOND.saturating_mul(depth) => tasks - depth,
            _ => 0,
        };
        let worker = &self.workers[index];
        let newest = worker.assigned().rev().take(count);
        // From newest to oldest, so that the front of the queue keeps the order of submission.
        for task in newest.filter(|(_, key)| self.is_movable(*key)) {
            self.revoke(worker.id, task, RevokeWhy::Steal, outbox);
        }
    }
}
