//! Draws the conclusions from an event, so that no event has to: assigns tasks, starts processes,
//! ends the pool, moves prefetched tasks to idle workers, and sets the alarms of the pool.
//!
//! Events leave marks: a task *arrived* in the queue, a worker was *freed* of a frame, or the
//! workers *changed*. Without marks there is next to nothing to do.

use brigade_base::Monotonic;

use crate::alarms::PoolAlarm;
use crate::{Outbox, Scheduler, TaskData};

impl<T: TaskData> Scheduler<T> {
    /// Does what follows from the event that was applied.
    #[inline]
    pub(crate) fn conclude(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        let freed = self.workers.take_freed();
        if self.tasks.waiting() > 0
            && (freed | self.tasks.take_arrived() | self.workers.has_changed())
        {
            self.assign(now, outbox);
            if self.tasks.waiting() > 0 && !self.workers.is_complete() {
                self.spawn_for_demand(now, outbox);
            }
        }
        if freed && self.settings.idle_timeout.is_some() && !self.alarms.is_set(PoolAlarm::Idle) {
            self.update_idle_alarm();
        }
        if self.workers.has_changed()
            | self.balance_due
            | self.alarms.is_set(PoolAlarm::Start)
            | !self.lifecycle.is_open()
        {
            self.conclude_rarely(now, outbox);
        }
    }

    /// Does what most events of tasks give no reason for.
    fn conclude_rarely(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if self.workers.has_changed() {
            self.warm_up.update(&self.workers);
            if self.has_demand() {
                self.spawn_for_demand(now, outbox);
            }
            self.replace_lost(now, outbox);
        }
        self.settle(now, outbox);
        if std::mem::take(&mut self.balance_due) {
            self.balance(now, outbox);
        }
        let changed = self.workers.take_changed();
        if changed {
            self.update_idle_alarm();
            self.update_shutdown_alarms();
        }
        if changed || self.alarms.is_set(PoolAlarm::Start) {
            self.update_start_alarm();
        }
    }
}
