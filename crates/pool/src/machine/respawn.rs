//! What happens when a worker's process ends, and how often it is replaced.
//!
//! The budget guards against crash loops: processes that die again and again without doing
//! anything. A life that answered a task, or that a task ended, is not charged: such deaths are
//! bounded by the number of tasks. So a program whose every input crashes its worker goes on to
//! its last input, while a worker that dies at once breaks the pool after a few tries. A pool with another worker that
//! works is not broken by one that does not start.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_wire::WorkerId;

use super::{
    Action, End, KillCause, Machine, Now, Occupant, Outbox, Phase, RevokeWhy, StartFailure,
    TaskRef, WorkerState,
};

/// So many starts in a row may fail, each made after the failure of the one before, none succeeding in between, before the pool is broken.
const FAILED_STARTS: u32 = 5;

/// The pause before the second start in a row that follows a failed one; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct RestartBudget {
    limit: u32,
    window: Duration,
    /// When lives without a task ended, within the window.
    charged: VecDeque<Now>,
    failed_starts: u32,
    /// Goes up with each failed start that counts; see [`round`](Self::round).
    round: u64,
    not_before: Option<Now>,
}

impl RestartBudget {
    pub(super) fn new(limit: u32, window: Duration) -> Self {
        Self {
            limit,
            window,
            charged: VecDeque::new(),
            failed_starts: 0,
            round: 0,
            not_before: None,
        }
    }

    /// The time before which no process is started.
    pub(super) fn not_before(&self) -> Option<Now> {
        self.not_before
    }

    /// Whether a pause is over; a pause that is over is forgotten.
    pub(super) fn may_start(&mut self, now: Now) -> bool {
        self.not_before = self.not_before.filter(|time| now < *time);
        self.not_before.is_none()
    }

    pub(super) fn a_worker_started(&mut self) {
        self.failed_starts = 0;
        self.not_before = None;
    }

    /// The round to which a start belongs that is made now. Of one round a single failure counts: the others are of starts
    /// that were made before it was known, and say nothing of what came after.
    pub(super) fn round(&self) -> u64 {
        self.round
    }

    /// Charges a start that failed; the error says why no more is allowed.
    fn charge_start(&mut self, now: Now, round: u64) -> Result<(), String> {
        if round != self.round {
            return Ok(());
        }
        self.round += 1;
        self.failed_starts += 1;
        let doublings = self.failed_starts.saturating_sub(2).min(6);
        let pause = FIRST_PAUSE * (1 << doublings);
        self.not_before = (self.failed_starts > 1).then(|| now.saturating_add(pause));
        let charged = self.charge(now);
        if self.failed_starts >= FAILED_STARTS {
            return Err(format!("{} starts in a row failed", self.failed_starts));
        }
        charged
    }

    /// Charges one life without a task; the error says why no more is allowed.
    fn charge(&mut self, now: Now) -> Result<(), String> {
        while self.charged.front().is_some_and(|time| time.saturating_add(self.window) < now) {
            self.charged.pop_front();
        }
        self.charged.push_back(now);
        if self.charged.len() > self.limit as usize {
            Err(format!(
                "{} workers died within {:?} without doing a task (the restart budget is {})",
                self.charged.len(),
                self.window,
                self.limit
            ))
        } else {
            Ok(())
        }
    }
}

impl<T> Machine<T> {
    /// When a start that had to pause is due.
    pub(super) fn respawn_due(&self) -> Option<Now> {
        let wanted = self.workers.iter().take(self.target);
        let vacant = wanted.into_iter().any(|worker| worker.state == WorkerState::Vacant);
        self.budget.not_before().filter(|_| vacant && self.has_demand())
    }

    pub(super) fn start_failed(
        &mut self,
        now: Now,
        worker: WorkerId,
        failure: &StartFailure,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.live_mut(worker) else {
            return;
        };
        let killed = entry.state == WorkerState::Killing;
        let round = entry.start_round;
        entry.state = WorkerState::Vacant;
        entry.stop_deadline = None;
        if !killed {
            let charged = self.budget.charge_start(now, round);
            // With a worker that works there is still a pool; the others are tried for again, with pauses.
            let alone = self.ready_workers() == 0;
            if alone && failure.permanent {
                self.break_pool(Arc::clone(&failure.reason), outbox);
            } else if let Err(limit) = charged {
                let reason: Arc<str> = format!("{limit}; the last: {}", failure.reason).into();
                if alone {
                    self.break_pool(reason, outbox);
                } else {
                    self.give_up_warming(reason);
                }
            }
            if self.has_demand() {
                self.spawn_for_demand(now, outbox);
            }
        }
        self.settle(now, outbox);
    }

    pub(super) fn died(&mut self, now: Now, worker: WorkerId, ran: &[u16], outbox: &mut Outbox<T>) {
        let Some(entry) = self.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return;
        };
        let was_asked_to_leave = matches!(entry.state, WorkerState::Stopping { .. });
        let kill_cause = entry.kill_cause;
        let productive = entry.completed > 0 || !ran.is_empty();
        entry.state = WorkerState::Vacant;
        entry.stop_deadline = None;
        entry.condemned = None;
        let in_flight = entry.take_in_flight();
        self.idle.retain(|slot| *slot != worker.slot);
        self.counters.worker_deaths += 1;
        self.inspect_soon(now, outbox);

        // From the newest to the oldest, so that the queue's front keeps the order of submission.
        for (link_slot, occupant) in in_flight.into_iter().rev() {
            let Occupant::Task(key) = occupant else {
                continue;
            };
            if ran.contains(&link_slot) {
                self.task_ran_at_death(key, worker, kill_cause, outbox);
            } else {
                self.give_back(key, worker, outbox);
            }
        }
        // One that was killed for what it wrote has failed by itself.
        let by_itself = matches!(kill_cause, None | Some(KillCause::Protocol));
        let to_charge = !productive && !was_asked_to_leave && by_itself;
        if to_charge && let Err(limit) = self.budget.charge(now) {
            self.break_pool(limit.into(), outbox);
        }
        self.assign(now, outbox);
        let wanted = !was_asked_to_leave && kill_cause != Some(KillCause::Unwanted);
        if wanted && self.phase == Phase::Running {
            self.spawn_slot(now, worker.slot, outbox);
        }
        if self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
        self.settle(now, outbox);
    }

    /// Replaces a process that nobody asked to leave, so that the next task finds its worker.
    fn spawn_slot(&mut self, now: Now, slot: u32, outbox: &mut Outbox<T>) {
        let vacant = self.workers[slot as usize].state == WorkerState::Vacant;
        if vacant && !self.quiescent {
            self.spawn_up_to(1, now, outbox);
        }
    }

    fn task_ran_at_death(
        &mut self,
        key: super::TaskKey,
        worker: WorkerId,
        kill_cause: Option<KillCause>,
        outbox: &mut Outbox<T>,
    ) {
        let shutting_down = kill_cause == Some(KillCause::Shutdown) || self.phase.is_terminating();
        let task = &mut self.tasks[key.index()];
        // A worker that broke the protocol was ruined by what it ran.
        let by_itself = matches!(kill_cause, None | Some(KillCause::Protocol));
        task.deaths += u32::from(by_itself);
        let quarantined = task.deaths >= self.settings.quarantine;
        let stopped = kill_cause == Some(KillCause::Stopped);
        let may_run_again =
            task.retries_left > 0 && !quarantined && !stopped && self.broken.is_none();
        if shutting_down {
            self.counters.killed += 1;
            self.tally.killed += 1;
            self.end_task(key, End::Killed(KillCause::Shutdown), outbox);
        } else if kill_cause == Some(KillCause::Asked) {
            self.counters.killed += 1;
            self.tally.killed += u64::from(self.phase != Phase::Running);
            self.end_task(key, End::Killed(KillCause::Asked), outbox);
        } else if may_run_again {
            task.retries_left -= 1;
            task.attempt = task.attempt.next();
            if let Some(terms) = &mut task.terms {
                terms.began = true;
            }
            self.counters.retried += 1;
            outbox.push(Action::Retried { id: task.id, attempt: task.attempt, worker });
            self.put_back(key, outbox);
        } else {
            let end = match kill_cause {
                _ if by_itself && quarantined && task.retries_left > 0 => End::Quarantined,
                None => End::Died,
                Some(cause) => End::Killed(cause),
            };
            self.counters.failed_by_death += 1;
            let ends = u64::from(self.phase != Phase::Running);
            *(if by_itself { &mut self.tally.failed } else { &mut self.tally.killed }) += ends;
            self.end_task(key, end, outbox);
        }
    }

    /// A task that had not begun when its worker died; that costs it nothing.
    fn give_back(&mut self, key: super::TaskKey, worker: WorkerId, outbox: &mut Outbox<T>) {
        if self.broken.is_some() {
            self.counters.refused_by_break += 1;
            self.end_task(key, End::Broken, outbox);
        } else if self.phase.cancels_pending() {
            self.counters.cancelled += 1;
            self.tally.cancelled += 1;
            self.end_task(key, End::Cancelled, outbox);
        } else {
            self.counters.requeued += 1;
            outbox.push(Action::Requeued { id: self.tasks[key.index()].id, worker });
            self.put_back(key, outbox);
        }
    }

    /// No worker can be had: everything that has not begun fails with the reason.
    pub(super) fn break_pool(&mut self, reason: Arc<str>, outbox: &mut Outbox<T>) {
        if self.broken.is_some() || self.phase == Phase::Ended {
            return;
        }
        self.broken = Some(reason);
        outbox.push(Action::Broke);
        for key in self.take_all_out() {
            self.counters.refused_by_break += 1;
            self.end_task(key, End::Broken, outbox);
        }
        self.revoke_all(RevokeWhy::Break, outbox);
    }

    /// Asks everything back that is assigned; what has begun goes on.
    pub(super) fn revoke_all(&self, why: RevokeWhy, outbox: &mut Outbox<T>) {
        for worker in &self.workers {
            for (link_slot, occupant) in worker.in_flight() {
                if let Occupant::Task(key) = occupant {
                    let task = TaskRef { key, id: self.tasks[key.index()].id };
                    outbox.push(Action::Revoke { worker: worker.id, link_slot, task, why });
                }
            }
        }
    }
}
