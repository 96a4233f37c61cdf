//! Handles the alarms that are due.

use brigade_base::Monotonic;

use crate::alarms::{Alarm, PoolAlarm};
use crate::{Action, Outbox, Phase, Scheduler, Shutdown, TaskData};

impl<T: TaskData> Scheduler<T> {
    pub(crate) fn tick(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        while let Some(alarm) = self.alarms.expire(now) {
            match alarm {
                Alarm::Task(key) => self.expire(key, outbox),
                Alarm::Stop(slot) => self.escalate(now, slot, outbox),
                Alarm::Skip(slot) => self.skip_overdue(slot, outbox),
                Alarm::Age(slot) => self.retire_aged(now, slot, outbox),
                Alarm::Pool(PoolAlarm::Idle) => self.retire_idle(now, outbox),
                Alarm::Pool(PoolAlarm::Escalate) => self.escalate_shutdown(now, outbox),
                Alarm::Pool(PoolAlarm::Inspect) => self.inspect(now, outbox),
                Alarm::Pool(PoolAlarm::Rescue) => self.rescue(now, outbox),
                Alarm::Pool(PoolAlarm::Slow) => self.report_slow(now, outbox),
                // The conclusion starts processes.
                Alarm::Pool(PoolAlarm::Start) => {}
            }
        }
    }

    /// Returns the time at which `Event::Tick` is due next, if ever.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        self.alarms.next_deadline()
    }

    fn escalate_shutdown(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        match self.lifecycle.phase() {
            Phase::Draining { .. } => self.enter(now, Shutdown::Terminate, None, outbox),
            Phase::Terminating { .. } => self.enter(now, Shutdown::Kill, None, outbox),
            Phase::Running | Phase::Killing | Phase::Ended => {}
        }
    }

    /// Looks for stopped workers, and plans the next look.
    fn inspect(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if !self.lifecycle.inspect_later(now) {
            return;
        }
        // This includes workers that have only revoked frames: they take up the room of waiting
        // tasks.
        for worker in self.workers.iter() {
            if worker.is_busy() {
                outbox.push(Action::Inspect { worker: worker.id });
            }
        }
    }
}
