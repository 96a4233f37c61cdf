//! Handles the death of a worker: retries or fails its tasks, and replaces the process.

use brigade_base::{Monotonic, WorkerId};

use crate::{
    Action, InterruptedAttempt, KillCause, Outbox, RetryWhy, Scheduler, TaskData, TaskEnd, TaskKey,
    WorkerDeath, WorkerState,
};

impl<T: TaskData> Scheduler<T> {
    pub(crate) fn died(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        WorkerDeath { interrupted, cause, gone, end }: &WorkerDeath,
        outbox: &mut Outbox<T>,
    ) {
        let entry = self.workers.live_mut(worker).filter(|entry| entry.reported.is_none());
        let Some(entry) = entry else {
            self.counters.stale_replies += 1;
            return;
        };
        let was_asked_to_stop = entry.state == WorkerState::Stopping;
        let kill_cause = entry.kill_cause.or(*cause);
        let productive = entry.completed > 0 || !interrupted.is_empty();
        entry.pending_kill = None;
        let assigned = self.workers.take_assigned(worker.slot);
        if *gone {
            self.tasks.give_back_of(worker);
        }
        let keeps_slot = !gone && self.settings.exclusive_slots;
        self.leave(
            worker.slot,
            if keeps_slot { WorkerState::Killing } else { WorkerState::Vacant },
        );
        self.lifecycle.inspect_soon(now);

        // From newest to oldest, so that the front of the queue keeps the order of submission.
        for (ring_index, key) in assigned.into_iter().rev() {
            if !gone {
                self.tasks.leave_with(worker, key);
            }
            match interrupted.iter().find(|attempt| attempt.ring_index == ring_index) {
                Some(attempt) => self.interrupted(now, key, attempt, worker, kill_cause, outbox),
                None if self.is_taken_to_run(key, kill_cause) => {
                    let attempt = InterruptedAttempt::of_task(ring_index);
                    self.interrupted(now, key, &attempt, worker, kill_cause, outbox);
                }
                None => self.requeue(key, 1, worker, outbox),
            }
        }
        let to_charge = !productive && !was_asked_to_stop && is_own_doing(kill_cause);
        if to_charge && let Err(limit) = self.budget.charge(now) {
            self.break_pool(format!("{limit}; the last one ended by {end}").into(), outbox);
        }
        let wanted = !was_asked_to_stop && kill_cause != Some(KillCause::Unwanted);
        if keeps_slot {
            self.workers[worker.slot as usize].reported = Some(wanted);
        } else {
            self.lost = wanted.then_some(worker.slot);
        }
    }

    /// Gives back what a worker had that was reported dead before its process was gone.
    pub(crate) fn reaped(&mut self, now: Monotonic, worker: WorkerId) {
        self.tasks.give_back_of(worker);
        let entry = self.workers.live_mut(worker);
        if let Some(wanted) = entry.and_then(|entry| entry.reported.take()) {
            self.leave(worker.slot, WorkerState::Vacant);
            self.lifecycle.inspect_soon(now);
            self.lost = wanted.then_some(worker.slot);
        }
    }

    /// Returns `true` if the worker was killed because of this task, which it claimed not to have
    /// begun.
    fn is_taken_to_run(&self, key: TaskKey, kill_cause: Option<KillCause>) -> bool {
        !self.settings.trusts_workers
            && matches!(kill_cause, Some(KillCause::Deadline | KillCause::Limit))
            && self.tasks.constraints(key).is_some_and(|it| it.started_at.is_some())
    }

    /// Replaces the worker that was lost, so that the next task finds its worker.
    pub(crate) fn replace_lost(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if let Some(slot) = self.lost.take()
            && self.workers[slot as usize].state == WorkerState::Vacant
            && self.lifecycle.is_running()
            && !self.lifecycle.is_quiescent()
        {
            self.spawn_up_to(1, now, outbox);
        }
    }

    /// Runs a task again that ran when its worker died, or ends it.
    pub(crate) fn interrupted_task(
        &mut self,
        now: Monotonic,
        key: TaskKey,
        worker: WorkerId,
        kill_cause: Option<KillCause>,
        outbox: &mut Outbox<T>,
    ) {
        let shutting_down =
            kill_cause == Some(KillCause::Shutdown) || self.lifecycle.phase().is_terminating();
        let task = self.tasks.rare_mut(key);
        let by_itself = is_own_doing(kill_cause);
        task.deaths += u32::from(by_itself);
        let quarantined = task.deaths >= self.settings.quarantine;
        // It would be stopped, or denied the same call, again.
        let in_vain = matches!(kill_cause, Some(KillCause::Stopped | KillCause::Denied));
        let may_run_again =
            task.retries_left > 0 && !quarantined && !in_vain && !self.lifecycle.is_broken();
        if shutting_down {
            self.end_task(key, TaskEnd::Killed(KillCause::Shutdown), outbox);
        } else if kill_cause == Some(KillCause::Asked) {
            self.end_task(key, TaskEnd::Killed(KillCause::Asked), outbox);
        } else if may_run_again {
            self.try_again(now, key, worker, RetryWhy::Death, outbox);
        } else {
            let end = match kill_cause {
                Some(KillCause::Denied) => TaskEnd::Died,
                _ if by_itself && quarantined && task.retries_left > 0 => TaskEnd::Quarantined,
                None => TaskEnd::Died,
                Some(cause) => TaskEnd::Killed(cause),
            };
            self.end_task(key, end, outbox);
        }
    }

    /// Returns a task that its worker had not started to the queue, items in up to `parts` tasks.
    /// It loses no attempt.
    pub(crate) fn requeue(
        &mut self,
        key: TaskKey,
        parts: u32,
        worker: WorkerId,
        outbox: &mut Outbox<T>,
    ) {
        if self.lifecycle.is_broken() {
            self.end_task(key, TaskEnd::Broken, outbox);
        } else if self.tasks.is_cancelled(key) || self.lifecycle.phase().cancels_pending() {
            self.end_task(key, TaskEnd::Cancelled, outbox);
        } else {
            self.counters.requeued += self.tasks.count(key);
            // From last to first, so that the front of the queue keeps the order of submission.
            for key in self.divide(key, parts).into_iter().rev() {
                let task = self.tasks.reference(key);
                outbox.push(Action::Requeued { task, worker });
                self.return_to_queue(key, outbox);
            }
        }
    }
}

/// Returns `true` if a worker died of what its task did. One that violated the protocol did so: the
/// task that it ran is to blame.
fn is_own_doing(kill_cause: Option<KillCause>) -> bool {
    matches!(kill_cause, None | Some(KillCause::Protocol | KillCause::Denied))
}
