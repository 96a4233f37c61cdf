//! Keeps the number of workers between the minimum and the maximum, and replaces old ones.
//!
//! A worker that is no longer wanted is *retired*: tasks that have not started are revoked, and the
//! request to stop follows the frame that it runs. It may take as long as that task takes. The
//! escalation that ends a worker begins when it has nothing left to do.

use std::time::Duration;

use brigade_base::{Monotonic, WorkerId};

use crate::alarms::PoolAlarm;
use crate::{
    Action, KillCause, Outbox, RevokeWhy, Scheduler, TaskData, TaskEnd, WorkerEntry, WorkerState,
};

impl<T: TaskData> Scheduler<T> {
    /// Returns the number of workers that exist and were not asked to stop.
    pub(crate) fn staying(&self) -> usize {
        let stays = |worker: &&WorkerEntry| {
            matches!(worker.state, WorkerState::Starting | WorkerState::Ready)
        };
        self.workers.iter().filter(stays).count()
    }

    /// Returns the number of workers that are kept even if there is nothing to do.
    pub(crate) fn min_workers(&self) -> usize {
        let settings = &self.settings;
        let kept = settings.min_workers.max(settings.spare_workers).min(self.workers.target());
        if self.keeps_workers() { kept } else { 0 }
    }

    /// Returns `true` if workers are kept for tasks that may come.
    fn keeps_workers(&self) -> bool {
        self.lifecycle.is_open() && !self.lifecycle.is_quiescent()
    }

    /// Returns the number of workers without a task that are missing, for the tasks that wait and
    /// as spare ones.
    pub(crate) fn missing(&self) -> usize {
        let starting = self.workers.iter().filter(|it| it.state == WorkerState::Starting).count();
        let spare = if self.keeps_workers() { self.settings.spare_workers } else { 0 };
        let wanted = self.tasks.could_run(self.workers.room()).saturating_add(spare);
        // Without spare workers, no worker is idle while a task waits.
        wanted.saturating_sub(starting + self.workers.idle().len())
    }

    /// Sets the number of workers that may have tasks at a time.
    pub(crate) fn resize(&mut self, now: Monotonic, workers: usize, outbox: &mut Outbox<T>) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.workers.resize(workers);
        for index in self.workers.target()..self.workers.len() {
            while let Some(key) = self.tasks.next_reserved(self.workers[index].id.slot) {
                self.end_task(key, TaskEnd::Cancelled, outbox);
            }
            self.retire(now, self.workers[index].id, "the pool was resized", outbox);
        }
    }

    /// Retires all idle workers, until there is work again.
    pub(crate) fn quiesce(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        self.lifecycle.set_quiescent(true);
        self.warm_up.stop(&mut self.workers);
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            // One that has only to skip what was revoked is idle, too.
            let has_nothing = worker.state == WorkerState::Ready && worker.tasks() == 0;
            if has_nothing || worker.state == WorkerState::Starting && self.tasks.queued() == 0 {
                self.retire(now, worker.id, "the pool was quiesced", outbox);
            }
        }
    }

    /// Handles a worker that became ready or answered its last frame.
    pub(crate) fn became_idle(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        match worker.state {
            WorkerState::Ready => {
                worker.idle_since = now;
                self.workers.add_idle(slot);
                if self.retires_when_idle(slot) {
                    let id = self.workers[slot as usize].id;
                    self.retire(now, id, "the pool was quiesced", outbox);
                }
            }
            WorkerState::Stopping => self.begin_escalation(now, slot as usize),
            WorkerState::Vacant | WorkerState::Starting | WorkerState::Killing => {}
        }
    }

    /// Returns `true` if an idle worker is retired because the pool was quiesced while it was busy.
    fn retires_when_idle(&self, slot: u32) -> bool {
        self.lifecycle.is_quiescent()
            && self.lifecycle.is_open()
            && self.tasks.queued() == 0
            && !self.tasks.is_reserved(slot)
    }

    /// Retires workers that have been idle for too long.
    pub(crate) fn retire_idle(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        while let Some((slot, due)) = self.next_idle()
            && due <= now
        {
            self.retire(now, self.workers[slot as usize].id, "reached `idle_timeout`", outbox);
        }
    }

    /// Retires a worker that has lived for too long.
    pub(crate) fn retire_aged(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        worker.age_alarm = None;
        let id = worker.id;
        self.retire(now, id, "reached `max_worker_age`", outbox);
    }

    /// Returns the worker that is retired next because it is idle, and the time of that.
    pub(crate) fn next_idle(&self) -> Option<(u32, Monotonic)> {
        let timeout = self.settings.idle_timeout?;
        // The first in the list has been idle for longest.
        let slot = *self.workers.idle().first()?;
        let due = self.workers[slot as usize].idle_since.saturating_add(timeout);
        (self.staying() > self.min_workers()).then_some((slot, due))
    }

    /// Sets or clears the alarm for `idle_timeout`. An alarm that goes off too early, because its
    /// worker got a task, is moved then.
    pub(crate) fn update_idle_alarm(&mut self) {
        if self.settings.idle_timeout.is_some() {
            let due = self.next_idle().map(|(_, due)| due);
            self.alarms.set_pool(PoolAlarm::Idle, due);
        }
    }

    /// Moves a worker that stops, is killed, or is gone to that state.
    pub(crate) fn leave(&mut self, slot: u32, state: WorkerState) {
        self.workers.set_state(slot, state);
        self.workers.remove_idle(slot);
        let worker = &mut self.workers[slot as usize];
        self.alarms.clear(&mut worker.age_alarm);
        self.alarms.clear(&mut worker.stop_alarm);
        if state != WorkerState::Stopping {
            self.alarms.clear(&mut worker.skip_alarm);
        }
        worker.escalation = None;
    }

    /// Retires a worker. It may finish its current task; tasks that have not started go elsewhere.
    pub(crate) fn retire(
        &mut self,
        now: Monotonic,
        id: WorkerId,
        why: &'static str,
        outbox: &mut Outbox<T>,
    ) {
        let index = id.slot as usize;
        match self.workers[index].state {
            WorkerState::Ready => {}
            WorkerState::Starting => return self.kill(id, KillCause::Unwanted, outbox),
            WorkerState::Vacant | WorkerState::Stopping | WorkerState::Killing => return,
        }
        self.leave(id.slot, WorkerState::Stopping);
        outbox.push(Action::Retired { worker: id, why });
        let worker = &self.workers[index];
        // From newest to oldest, so that the front of the queue keeps the order of submission.
        for task in worker.assigned().rev() {
            self.revoke(id, task, RevokeWhy::Steal, outbox);
        }
        outbox.push(Action::Stop { worker: id });
        if worker.load() == 0 {
            self.begin_escalation(now, index);
        }
    }

    /// Returns the time at which a worker that is ready now is retired for its age.
    pub(crate) fn retirement_time(&self, now: Monotonic, worker: WorkerId) -> Option<Monotonic> {
        let age = self.settings.max_age?;
        Some(now.saturating_add(age.saturating_sub(jitter(age, worker))))
    }

    /// Returns the number of tasks after which a worker is retired.
    pub(crate) fn allowance(&self, worker: WorkerId) -> Option<u64> {
        let most = self.settings.max_tasks?;
        let (jitter, spread, whole) =
            (most / u64::from(JITTER), u64::from(spread(worker)), u64::from(u8::MAX));
        // The product of the first two can exceed 64 bits.
        Some(most - (jitter / whole * spread + jitter % whole * spread / whole))
    }
}

/// Workers that were started together are not all retired at once: each is retired earlier by up to
/// one part in this many.
const JITTER: u32 = 10;

fn jitter(of: Duration, worker: WorkerId) -> Duration {
    // Divided first, because `Duration::MAX` is allowed.
    of / (JITTER * u32::from(u8::MAX)) * u32::from(spread(worker))
}

/// Returns a number that looks random and is always the same for one worker.
fn spread(worker: WorkerId) -> u8 {
    worker.seed().to_be_bytes()[0]
}
