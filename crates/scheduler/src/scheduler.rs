//! The scheduler's state, and what it does with the events of tasks.

use std::num::NonZeroU32;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, TaskId, WorkerId};

use crate::alarms::{Alarm, Alarms, RescuePlan};
use crate::lifecycle::Lifecycle;
use crate::restart_budget::RestartBudget;
use crate::run_times::RunTimes;
use crate::tasks::Tasks;
use crate::warm_up::WarmUp;
use crate::worker::{Occupant, WorkerState};
use crate::workers::Workers;
use crate::{
    Action, Counters, Event, FailedItems, KillCause, Outbox, Removed, Settings, Submission,
    TaskData, TaskEnd, TaskKey,
};

/// The scheduler; see the crate's documentation. `T` is the driver's data for a task.
#[derive(Debug)]
pub struct Scheduler<T> {
    pub(crate) settings: Settings,
    /// Splits the driver's data of a chunk at this item, and returns the data of the rest.
    pub(crate) split_data: fn(&T, u32) -> T,
    pub(crate) tasks: Tasks<T>,
    pub(crate) workers: Workers,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) warm_up: WarmUp,
    pub(crate) budget: RestartBudget,
    pub(crate) run_times: RunTimes,
    /// The next check that workers with several tasks make progress.
    pub(crate) rescue: Option<RescuePlan>,
    /// Every deadline.
    pub(crate) alarms: Alarms,
    pub(crate) counters: Counters,
    /// The counters when the shutdown began.
    pub(crate) at_shutdown: Counters,
    /// The time of the last look for tasks that are too old.
    pub(crate) looked_for_slow: Monotonic,
    /// `true` if the next conclusion moves prefetched tasks to idle workers.
    pub(crate) balance_due: bool,
    /// The slot of a worker that was not asked to stop and died.
    pub(crate) lost: Option<u32>,
}

impl<T: TaskData> Scheduler<T> {
    /// Creates a scheduler without tasks and workers. When a chunk is divided, `split_data` splits
    /// the driver's data at an item, and returns the data of the items from there on.
    ///
    /// # Panics
    /// If there are 2³² slots.
    pub fn new(settings: Settings, split_data: fn(&T, u32) -> T) -> Self {
        let budget = RestartBudget::new(settings.restart_limit, settings.restart_window);
        Self {
            workers: Workers::new(settings.workers, settings.spare_workers, settings.copies),
            tasks: Tasks::new(&settings.resources),
            settings,
            split_data,
            lifecycle: Lifecycle::default(),
            warm_up: WarmUp::default(),
            budget,
            run_times: RunTimes::default(),
            rescue: None,
            alarms: Alarms::default(),
            counters: Counters::default(),
            at_shutdown: Counters::default(),
            looked_for_slow: Monotonic::ZERO,
            balance_due: false,
            lost: None,
        }
    }

    /// Handles one event, and appends the resulting actions to `outbox` in order.
    pub fn handle(&mut self, now: Monotonic, event: Event<T>, outbox: &mut Outbox<T>) {
        self.apply(now, event, outbox);
        self.conclude(now, outbox);
    }

    /// Records what the event says. What follows from that is left to the conclusion.
    #[inline]
    fn apply(&mut self, now: Monotonic, event: Event<T>, outbox: &mut Outbox<T>) {
        match event {
            Event::Submit(submission) => self.submit(now, submission, outbox),
            Event::Cancel(task) => self.cancel(task, outbox),
            Event::Kill(task) => self.kill_task(task, outbox),
            Event::Observed { task, seen } => self.observed(now, task, *seen, outbox),
            Event::SectionBegun { worker, ring_index, due } => {
                self.section_begun(worker, ring_index, due);
            }
            Event::RevokeAnswer { task, worker, ring_index, why, found } => {
                self.revoke_answer(now, task, (worker, ring_index), why, found, outbox);
            }
            Event::Finished { worker, task, attempt, run_time, worn, failure } => {
                if let Some(key) = self.reported(worker, task, attempt, outbox) {
                    self.free(worker.slot, run_time);
                    if let Some(failure) = failure {
                        let failed = [FailedItems { first: 0, count: NonZeroU32::MIN, failure }];
                        self.end_finished(now, key, &failed, worker, TaskEnd::Reported, outbox);
                    } else {
                        self.end_task(key, TaskEnd::Reported, outbox);
                    }
                    self.after_finished(now, worker, worn, outbox);
                }
            }
            Event::Returned(returned) => self.returned(now, *returned, outbox),
            Event::Skipped { worker, task, attempt } => {
                self.skipped(now, worker, task, attempt, outbox);
            }
            Event::Balance => self.balance_due = true,
            other => self.apply_rare(now, other, outbox),
        }
    }

    /// Records events of workers and of the pool, which are rare compared to those of tasks.
    fn apply_rare(&mut self, now: Monotonic, event: Event<T>, outbox: &mut Outbox<T>) {
        self.workers.set_changed();
        self.balance_due = true;
        match event {
            Event::WarmUp => self.warm_up(),
            Event::Resize { workers } => self.resize(now, workers, outbox),
            Event::Quiesce => self.quiesce(now, outbox),
            Event::Ready { worker } => self.ready(now, worker, outbox),
            Event::StartFailed { worker, failure } => {
                self.start_failed(now, worker, &failure, outbox);
            }
            Event::Misbehaved { worker } => self.kill(worker, KillCause::Protocol, outbox),
            Event::Crashed { worker } => self.crashed(worker),
            Event::Died { worker, death } => self.died(now, worker, &death, outbox),
            Event::Reaped { worker } => self.reaped(now, worker),
            Event::FoundStopped { worker } => self.kill(worker, KillCause::Stopped, outbox),
            Event::Shutdown { mode, timeout } => self.begin_shutdown(now, mode, timeout, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Break { reason } => self.break_pool(reason, outbox),
            Event::Submit(_)
            | Event::Cancel(_)
            | Event::Kill(_)
            | Event::Observed { .. }
            | Event::SectionBegun { .. }
            | Event::RevokeAnswer { .. }
            | Event::Finished { .. }
            | Event::Returned(_)
            | Event::Skipped { .. }
            | Event::Balance => unreachable!("handled by the caller"),
        }
    }

    #[inline]
    pub(crate) fn submit(
        &mut self,
        now: Monotonic,
        submission: Submission<T>,
        outbox: &mut Outbox<T>,
    ) {
        if let Some(end) = self.lifecycle.refusal() {
            let (task, attempt) = (submission.task, Attempt::first());
            let removed = Removed { task, attempt, items: 0, submitted: now };
            outbox.push(Action::Complete { removed, end });
            return;
        }
        if self.lifecycle.is_quiescent() {
            self.lifecycle.set_quiescent(false);
            self.workers.set_changed();
        }
        let has_constraints = submission.constraints.is_some();
        let key = self.tasks.insert(now, submission);
        self.counters.submitted += self.tasks.count(key);
        outbox.push(Action::Accepted { task: self.tasks.reference(key) });
        self.watch_age(now);
        if has_constraints {
            self.queue_with_constraints(key, outbox);
        } else {
            self.assign_new(now, key, outbox);
        }
    }

    pub(crate) fn queue_with_constraints(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        if self.has_lost_its_slot(key) {
            return self.end_task(key, TaskEnd::Cancelled, outbox);
        }
        self.tasks.wait_at_the_end(key);
        self.arm_waiting(key);
    }

    /// Returns the task that the worker reports, or `None` if the report does not count.
    #[inline]
    pub(crate) fn reported(
        &mut self,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        outbox: &mut Outbox<T>,
    ) -> Option<TaskKey> {
        let Some(entry) = self.workers.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return None;
        };
        if let Some(Occupant::Task(key)) = entry.front()
            && (self.tasks.id(key), self.tasks.attempt(key)) == (id, attempt)
        {
            // A task that is to end for its deadline or on request did not end before.
            let counts = entry.condemned != Some(key);
            if counts && matches!(entry.state, WorkerState::Stopping | WorkerState::Killing) {
                // It may use what the task has taken until it has exited.
                self.tasks.leave_with(worker, key);
            }
            return counts.then_some(key);
        }
        self.kill(worker, KillCause::Protocol, outbox);
        None
    }

    /// Frees a worker of its first task, which it has finished.
    #[inline]
    pub(crate) fn free(&mut self, slot: u32, run_time: Duration) {
        self.workers.pop_front(slot);
        let entry = &mut self.workers[slot as usize];
        entry.completed += 1;
        entry.stalled = false;
        self.run_times.learn(run_time);
    }

    /// Retires a worker that has grown too large or in which threads were left, and looks at what
    /// it does next.
    #[inline]
    pub(crate) fn after_finished(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        worn: bool,
        outbox: &mut Outbox<T>,
    ) {
        if worn {
            self.retire(
                now,
                worker,
                "has too much memory, or threads that a task has left",
                outbox,
            );
        }
        self.after_outcome(now, worker.slot, outbox);
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
                self.workers.pop_front(worker.slot);
                self.after_outcome(now, worker.slot, outbox);
            }
            _ => self.kill(worker, KillCause::Protocol, outbox),
        }
    }

    /// Looks at what a worker does next after it has finished or skipped a task.
    #[inline]
    pub(crate) fn after_outcome(&mut self, now: Monotonic, slot: u32, outbox: &mut Outbox<T>) {
        self.watch_skip(now, slot);
        if self.workers[slot as usize].load() == 0 {
            self.became_idle(now, slot, outbox);
        } else {
            self.observe_first(slot, outbox);
        }
    }

    pub(crate) fn ready(&mut self, now: Monotonic, worker: WorkerId, outbox: &mut Outbox<T>) {
        if self.workers.live(worker).is_none_or(|entry| entry.state != WorkerState::Starting) {
            return;
        }
        self.workers.set_state(worker.slot, WorkerState::Ready);
        self.workers[worker.slot as usize].awaited_by_warm_up = false;
        self.lifecycle.inspect_soon(now);
        self.budget.worker_started();
        if let Some(due) = self.retirement_time(now, worker) {
            let key = &mut self.workers[worker.slot as usize].age_alarm;
            self.alarms.set(key, due, Alarm::Age(worker.slot));
        }
        self.became_idle(now, worker.slot, outbox);
    }

    /// Removes a task, counts it, and reports how it ended.
    #[inline]
    pub(crate) fn end_task(&mut self, key: TaskKey, end: TaskEnd, outbox: &mut Outbox<T>) {
        self.disarm(key);
        let removed = self.tasks.remove(key);
        self.counters.count(end, removed.items.into());
        outbox.push(Action::Complete { removed, end });
    }
}
