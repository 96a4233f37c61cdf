//! Starts worker processes for the work that waits.

use std::sync::Arc;

use brigade_base::{Monotonic, WorkerId};

use crate::alarms::PoolAlarm;
use crate::{Action, Outbox, Scheduler, StartFailure, TaskData, WorkerEntry, WorkerState};

impl<T: TaskData> Scheduler<T> {
    /// Starts all workers that the pool may have.
    pub(crate) fn warm_up(&mut self) {
        if self.lifecycle.is_running() {
            self.lifecycle.set_quiescent(false);
            self.warm_up.begin(&mut self.workers);
        }
    }

    /// Returns `true` if a worker is wanted that does not exist.
    pub(crate) fn has_demand(&self) -> bool {
        self.lifecycle.may_have_workers()
            && (self.warm_up.is_in_progress()
                || self.tasks.waiting() > 0
                || (self.settings.spare_workers > 0 && self.missing() > 0)
                || self.staying() < self.min_workers())
    }

    /// Returns `true` if another process may be started.
    pub(crate) fn has_vacancy(&self) -> bool {
        let vacant = |worker: &WorkerEntry| worker.state == WorkerState::Vacant;
        !self.workers.is_complete()
            && self.workers.room() > 0
            && self.lifecycle.may_have_workers()
            && self.workers.wanted().any(vacant)
    }

    /// Starts a process for each queued task that no starting process will take; all processes
    /// during a warm-up; the minimum number of workers, and spare ones; and the only worker of a
    /// waiting task.
    pub(crate) fn spawn_for_demand(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        let wanted = self.missing().max(self.min_workers().saturating_sub(self.staying()));
        self.spawn_up_to(wanted, now, outbox);
    }

    pub(crate) fn spawn_up_to(&mut self, wanted: usize, now: Monotonic, outbox: &mut Outbox<T>) {
        if !self.lifecycle.may_have_workers() {
            return;
        }
        if self.budget.may_start(now) {
            self.start_vacant(wanted, outbox);
        }
        self.update_start_alarm();
    }

    fn start_vacant(&mut self, wanted: usize, outbox: &mut Outbox<T>) {
        let credit = self.settings.credit;
        let (round, mut left) = (self.budget.round(), wanted);
        for index in 0..self.workers.target() {
            let worker = &mut self.workers[index];
            // A slot with reserved tasks is wanted in any case, as is one that a warm-up waits for.
            let own = self.tasks.is_reserved(worker.id.slot) || worker.awaited_by_warm_up;
            if worker.state != WorkerState::Vacant || (left == 0 && !own) {
                continue;
            }
            left = left.saturating_sub(1);
            worker.start_round = round;
            let worker = self.workers.begin_start(index, credit);
            self.counters.respawned += u64::from(worker.generation > 1);
            outbox.push(Action::Spawn { worker });
        }
    }

    pub(crate) fn start_failed(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        failure: &StartFailure,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.workers.live_mut(worker) else {
            return;
        };
        let killed = matches!(entry.state, WorkerState::Killing | WorkerState::Stopping);
        let round = entry.start_round;
        // One that has done something could be started.
        let is_permanent = failure.permanent && entry.completed == 0;
        // One that was forked may have tasks before it has run.
        let assigned = self.workers.take_assigned(worker.slot);
        self.leave(worker.slot, WorkerState::Vacant);
        for (_, key) in assigned.into_iter().rev() {
            self.requeue(key, 1, worker, outbox);
        }
        if !killed {
            let charged = self.budget.charge_start(now, round);
            // With one working worker there is still a pool. Starts of the others are retried, with
            // pauses.
            let alone = self.ready_workers() == 0;
            if alone && is_permanent {
                self.break_pool(Arc::clone(&failure.reason), outbox);
            } else if let Err(limit) = charged {
                let reason: Arc<str> = format!("{limit}; last failure: {}", failure.reason).into();
                if alone {
                    self.break_pool(reason, outbox);
                } else {
                    self.warm_up.give_up(&mut self.workers, reason);
                }
            }
        }
    }

    /// Sets or clears the alarm for starts that were postponed.
    pub(crate) fn update_start_alarm(&mut self) {
        let vacant = |worker: &WorkerEntry| worker.state == WorkerState::Vacant;
        let is_wanted = || self.workers.wanted().any(vacant) && self.has_demand();
        let due = self.budget.not_before().filter(|_| is_wanted());
        self.alarms.set_pool(PoolAlarm::Start, due);
    }
}
