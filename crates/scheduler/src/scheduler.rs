//! The scheduler's state, and what it does with the events of tasks.

use std::sync::Arc;
use std::time::Duration;

use brigade_ids::{Attempt, TaskId, WorkerId};
use brigade_time::Monotonic;

use crate::alarms::{Alarm, Alarms, PoolAlarm};
use crate::balance::RescuePlan;
use crate::lifecycle::Lifecycle;
use crate::restart_budget::RestartBudget;
use crate::run_times::RunTimes;
use crate::tasks::Tasks;
use crate::worker::{Occupant, WorkerState};
use crate::workers::Workers;
use crate::{
    Action, Counters, End, Event, KillCause, Outbox, Settings, Submission, TaskKey, TaskRef,
};

/// The scheduler; see the module's documentation. `T` is the driver's data for a task.
#[derive(Debug)]
pub struct Scheduler<T> {
    pub(crate) settings: Settings,
    pub(crate) tasks: Tasks<T>,
    pub(crate) workers: Workers,
    pub(crate) lifecycle: Lifecycle,
    /// `true` while a warm-up starts all workers, with or without work.
    pub(crate) warming: bool,
    /// The reason why the last warm-up was given up.
    pub(crate) not_warmed: Option<Arc<str>>,
    pub(crate) budget: RestartBudget,
    pub(crate) run_times: RunTimes,
    /// The worker that was assigned the last task.
    pub(crate) current: usize,
    /// The next check that workers with several tasks make progress.
    pub(crate) rescue: Option<RescuePlan>,
    /// Every deadline.
    pub(crate) alarms: Alarms,
    pub(crate) counters: Counters,
}

impl<T> Scheduler<T> {
    /// Creates a scheduler without tasks and workers.
    ///
    /// # Panics
    /// If there are 2³² slots.
    pub fn new(settings: Settings) -> Self {
        let budget = RestartBudget::new(settings.restart_limit, settings.restart_window);
        Self {
            workers: Workers::new(settings.workers),
            settings,
            tasks: Tasks::default(),
            lifecycle: Lifecycle::default(),
            warming: false,
            not_warmed: None,
            budget,
            run_times: RunTimes::default(),
            current: 0,
            rescue: None,
            alarms: Alarms::default(),
            counters: Counters::default(),
        }
    }

    /// Handles one event, and appends the resulting actions to `outbox` in order.
    pub fn handle(&mut self, now: Monotonic, event: Event<T>, outbox: &mut Outbox<T>) {
        match event {
            Event::Submit(submission) => self.submit(now, submission, outbox),
            Event::Cancel(task) => self.cancel(now, task, outbox),
            Event::Kill(task) => self.kill_task(now, task, outbox),
            Event::Observed { task, seen } => self.observed(now, task, *seen, outbox),
            Event::SectionBegun { worker, ring_index, due } => {
                self.section_begun(worker, ring_index, due);
            }
            Event::RevokeAnswer { task, worker, ring_index, why, found } => {
                self.revoke_answer(now, task, (worker, ring_index), why, found, outbox);
            }
            Event::Finished { worker, task, attempt, run_time, worn } => {
                if self.finished(worker, task, attempt, run_time, outbox) {
                    if worn {
                        self.retire(now, worker, "exceeded `max_worker_rss`", outbox);
                    }
                    self.after_outcome(now, worker.slot, outbox);
                }
            }
            Event::Skipped { worker, task, attempt } => {
                self.skipped(now, worker, task, attempt, outbox);
            }
            Event::Balance => self.balance(now, outbox),
            other => self.handle_lifecycle(now, other, outbox),
        }
    }

    /// Handles events of workers and of the pool, which are rare compared to those of tasks.
    pub(crate) fn handle_lifecycle(
        &mut self,
        now: Monotonic,
        event: Event<T>,
        outbox: &mut Outbox<T>,
    ) {
        self.workers.set_incomplete();
        match event {
            Event::WarmUp => self.warm_up(now, outbox),
            Event::Resize { workers } => self.resize(now, workers, outbox),
            Event::Quiesce => self.quiesce(now, outbox),
            Event::Ready { worker } => self.ready(now, worker, outbox),
            Event::StartFailed { worker, failure } => {
                self.start_failed(now, worker, &failure, outbox);
            }
            Event::Misbehaved { worker } => self.kill(worker, KillCause::Protocol, outbox),
            Event::Died { worker, interrupted } => self.died(now, worker, &interrupted, outbox),
            Event::FoundStopped { worker } => self.kill(worker, KillCause::Stopped, outbox),
            Event::Shutdown { mode, timeout } => self.begin_shutdown(now, mode, timeout, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Break { reason } => {
                self.break_pool(reason, outbox);
                self.settle(now, outbox);
            }
            Event::Submit(_)
            | Event::Cancel(_)
            | Event::Kill(_)
            | Event::Observed { .. }
            | Event::SectionBegun { .. }
            | Event::RevokeAnswer { .. }
            | Event::Finished { .. }
            | Event::Skipped { .. }
            | Event::Balance => unreachable!("handled by the caller"),
        }
        self.balance(now, outbox);
        if self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
        self.workers.update_complete();
        self.update_idle_alarm();
        self.update_start_alarm();
    }

    pub(crate) fn submit(
        &mut self,
        now: Monotonic,
        submission: Submission<T>,
        outbox: &mut Outbox<T>,
    ) {
        if let Some(end) = self.lifecycle.refusal() {
            let Submission { task, attempt, .. } = submission;
            outbox.push(Action::Complete { task, attempt, end });
            return;
        }
        self.counters.submitted += 1;
        // A map submits an item again as a task of its own.
        self.counters.retried += u64::from(submission.attempt != Attempt::first());
        self.lifecycle.set_quiescent(false);
        let id = submission.id;
        let has_constraints = submission.constraints.is_some();
        let key = self.tasks.insert(now, submission);
        outbox.push(Action::Accepted { task: TaskRef { key, id } });
        if has_constraints {
            self.queue_with_constraints(key, outbox);
        } else {
            self.tasks.wait_at_the_end(key);
        }
        self.assign(now, outbox);
    }

    pub(crate) fn queue_with_constraints(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        if let Some(slot) = self.tasks[key].slot() {
            if slot as usize >= self.workers.target() {
                self.counters.cancelled += 1;
                return self.end_task(key, End::Cancelled, outbox);
            }
            self.workers.set_incomplete();
        }
        self.tasks.wait_at_the_end(key);
        self.arm_waiting(key);
    }

    /// Ends a task with its outcome. Returns `false` if the outcome did not count.
    pub(crate) fn finished(
        &mut self,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        run_time: Duration,
        outbox: &mut Outbox<T>,
    ) -> bool {
        let Some(entry) = self.workers.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return false;
        };
        let Some(Occupant::Task(key)) = entry.front() else {
            self.kill(worker, KillCause::Protocol, outbox);
            return false;
        };
        let task = &self.tasks[key];
        if task.id != id || task.attempt != attempt {
            self.kill(worker, KillCause::Protocol, outbox);
            return false;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.pop_front();
        entry.completed += 1;
        entry.stalled = false;
        self.counters.finished += 1;
        self.lifecycle.count(|tally| &mut tally.finished);
        self.run_times.learn(run_time);
        self.end_task(key, End::Reported, outbox);
        true
    }

    pub(crate) fn skipped(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.workers.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return;
        };
        match entry.front() {
            Some(Occupant::Revoked { id: expected, attempt: at })
                if expected == id && at == attempt =>
            {
                entry.pop_front();
                self.after_outcome(now, worker.slot, outbox);
            }
            _ => self.kill(worker, KillCause::Protocol, outbox),
        }
    }

    /// Assigns more tasks after a worker has finished or skipped one.
    pub(crate) fn after_outcome(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        if self.workers[slot as usize].load() == 0 {
            self.became_idle(now, slot, outbox);
        } else {
            self.observe_first(slot, outbox);
        }
        self.assign(now, outbox);
        self.settle(now, outbox);
    }

    pub(crate) fn ready(&mut self, now: Monotonic, worker: WorkerId, outbox: &mut Outbox<T>) {
        let Some(entry) = self.workers.live_mut(worker) else {
            return;
        };
        if entry.state != WorkerState::Starting {
            return;
        }
        entry.state = WorkerState::Ready;
        self.inspect_soon(now);
        self.budget.worker_started();
        self.workers[worker.slot as usize].awaited_by_warm_up = false;
        self.update_warming();
        if let Some(due) = self.retirement_time(now, worker) {
            let key = &mut self.workers[worker.slot as usize].age_alarm;
            self.alarms.set(key, due, Alarm::Age(worker.slot));
        }
        self.became_idle(now, worker.slot, outbox);
        self.assign(now, outbox);
        self.settle(now, outbox);
    }

    pub(crate) fn end_cancelled(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        self.counters.cancelled += 1;
        self.lifecycle.count(|tally| &mut tally.cancelled);
        self.end_task(key, End::Cancelled, outbox);
    }

    /// Removes a task and reports how it ended.
    pub(crate) fn end_task(&mut self, key: TaskKey, end: End, outbox: &mut Outbox<T>) {
        self.disarm(key);
        let entry = self.tasks.remove(key);
        if self.alarms.is_set(PoolAlarm::Start) {
            self.update_start_alarm();
        }
        outbox.push(Action::Complete { task: entry.task, attempt: entry.attempt, end });
    }
}
