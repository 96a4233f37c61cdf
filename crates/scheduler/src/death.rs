//! Handles the death of a worker: retries or fails its tasks, and replaces the process.

use brigade_ids::WorkerId;
use brigade_time::Monotonic;

use crate::{Action, End, KillCause, Occupant, Outbox, Scheduler, TaskKey, WorkerState};

impl<T> Scheduler<T> {
    pub(crate) fn died(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        interrupted: &[u16],
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.workers.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return;
        };
        let was_asked_to_stop = entry.state == WorkerState::Stopping;
        let kill_cause = entry.kill_cause;
        let productive = entry.completed > 0 || !interrupted.is_empty();
        entry.state = WorkerState::Vacant;
        entry.condemned = None;
        let in_flight = entry.take_in_flight();
        self.workers.remove_idle(worker.slot);
        self.clear_alarms(worker.slot);
        self.counters.worker_deaths += 1;
        self.inspect_soon(now);

        // From newest to oldest, so that the front of the queue keeps the order of submission.
        for (ring_index, occupant) in in_flight.into_iter().rev() {
            let Occupant::Task(key) = occupant else {
                continue;
            };
            if interrupted.contains(&ring_index) {
                self.interrupted_task(key, worker, kill_cause, outbox);
            } else {
                self.requeue(key, worker, outbox);
            }
        }
        // A worker that was killed for violating the protocol counts as one that failed by itself.
        let by_itself = matches!(kill_cause, None | Some(KillCause::Protocol));
        let to_charge = !productive && !was_asked_to_stop && by_itself;
        if to_charge && let Err(limit) = self.budget.charge(now) {
            self.break_pool(limit.into(), outbox);
        }
        self.assign(now, outbox);
        let wanted = !was_asked_to_stop && kill_cause != Some(KillCause::Unwanted);
        if wanted && self.lifecycle.is_running() {
            self.replace_worker(now, worker.slot, outbox);
        }
        if self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
        self.settle(now, outbox);
    }

    /// Replaces a worker that was not asked to stop, so that the next task finds its worker.
    fn replace_worker(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        let vacant = self.workers[slot as usize].state == WorkerState::Vacant;
        if vacant && !self.lifecycle.is_quiescent() {
            self.spawn_up_to(1, now, outbox);
        }
    }

    fn interrupted_task(
        &mut self,
        key: TaskKey,
        worker: WorkerId,
        kill_cause: Option<KillCause>,
        outbox: &mut Outbox<T>,
    ) {
        let shutting_down =
            kill_cause == Some(KillCause::Shutdown) || self.lifecycle.phase().is_terminating();
        let task = &mut self.tasks[key];
        // If a worker violated the protocol, the task that it ran is to blame.
        let by_itself = matches!(kill_cause, None | Some(KillCause::Protocol));
        task.deaths += u32::from(by_itself);
        let quarantined = task.deaths >= self.settings.quarantine;
        let stopped = kill_cause == Some(KillCause::Stopped);
        let may_run_again =
            task.retries_left > 0 && !quarantined && !stopped && !self.lifecycle.is_broken();
        if shutting_down {
            self.counters.killed += 1;
            self.lifecycle.tally_mut().killed += 1;
            self.end_task(key, End::Killed(KillCause::Shutdown), outbox);
        } else if kill_cause == Some(KillCause::Asked) {
            self.counters.killed += 1;
            self.lifecycle.count(|tally| &mut tally.killed);
            self.end_task(key, End::Killed(KillCause::Asked), outbox);
        } else if may_run_again {
            task.retries_left -= 1;
            task.attempt = task.attempt.next();
            if let Some(constraints) = &mut task.constraints {
                constraints.began = true;
            }
            self.counters.retried += 1;
            outbox.push(Action::Retried { id: task.id, attempt: task.attempt, worker });
            self.return_to_queue(key, outbox);
        } else {
            let end = match kill_cause {
                _ if by_itself && quarantined && task.retries_left > 0 => End::Quarantined,
                None => End::Died,
                Some(cause) => End::Killed(cause),
            };
            self.counters.failed_by_death += 1;
            self.lifecycle.count(
                |tally| {
                    if by_itself { &mut tally.failed } else { &mut tally.killed }
                },
            );
            self.end_task(key, end, outbox);
        }
    }

    /// Returns a task that had not started when its worker died to the queue. It loses no attempt.
    fn requeue(&mut self, key: TaskKey, worker: WorkerId, outbox: &mut Outbox<T>) {
        if self.lifecycle.is_broken() {
            self.counters.refused_by_break += 1;
            self.end_task(key, End::Broken, outbox);
        } else if self.lifecycle.phase().cancels_pending() {
            self.counters.cancelled += 1;
            self.lifecycle.count(|tally| &mut tally.cancelled);
            self.end_task(key, End::Cancelled, outbox);
        } else {
            self.counters.requeued += 1;
            outbox.push(Action::Requeued { id: self.tasks[key].id, worker });
            self.return_to_queue(key, outbox);
        }
    }
}
