//! Enforces the queue deadlines and hard deadlines of tasks.
//!
//! Workers do not report when they start a task. So a timer is armed for the earliest moment at
//! which a deadline can expire. When it fires, the driver looks up when the task started
//! (`Action::Observe`), and the timer is armed again if the task started later than assumed. A task
//! is therefore never ended early, and as exactly as the driver keeps time.

use brigade_base::{Monotonic, WorkerId};

use crate::alarms::Alarm;
use crate::entry::EntryState;
use crate::task::Constraints;
use crate::{
    Action, KillCause, Observation, Occupant, Outbox, RevokeWhy, Scheduler, TaskData, TaskEnd,
    TaskKey, TaskRef,
};

impl<T: TaskData> Scheduler<T> {
    /// Arms or disarms the timer of a task that entered the queue or returned to it.
    pub(crate) fn arm_waiting(&mut self, key: TaskKey) {
        let submitted = self.tasks.submitted(key);
        let Some(constraints) = self.tasks.constraints_mut(key) else { return };
        constraints.section_check = None;
        match constraints.queue_due(submitted) {
            Some(due) => self.set_timer(key, due),
            None => self.disarm(key),
        }
    }

    /// Returns `true` if the queue deadline of a waiting task has passed. The driver may be late
    /// with the tick that ends such a task, and a worker may have room before.
    #[inline]
    pub(crate) fn is_late(&self, now: Monotonic, key: TaskKey) -> bool {
        let Some(constraints) = self.tasks.constraints(key) else { return false };
        constraints.queue_due(self.tasks.submitted(key)).is_some_and(|due| due <= now)
    }

    /// Arms the timer of a task that was sent to a worker. The task can start once no other is
    /// before it; see `observe_first`.
    pub(crate) fn arm_assigned(&mut self, now: Monotonic, key: TaskKey) {
        let (state, submitted) = (self.tasks[key].state(), self.tasks.submitted(key));
        let Some(constraints) = self.tasks.constraints_mut(key) else { return };
        constraints.started_at = None;
        constraints.ended_at = None;
        constraints.is_asked = false;
        constraints.first_since = None;
        constraints.section_check = None;
        let due = match state {
            EntryState::Assigned { worker, .. }
                if self.workers[worker as usize].front() == Some(Occupant::Task(key)) =>
            {
                constraints.first_since = Some(now);
                constraints.due(now, submitted)
            }
            _ => constraints.queue_due(submitted),
        };
        if let Some(due) = due {
            self.set_timer(key, due);
        }
    }

    /// Watches the first task of a worker, which may be running because all tasks before it are
    /// finished.
    pub(crate) fn observe_first(&self, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &self.workers[slot as usize];
        if let Some(Occupant::Task(key)) = worker.front()
            && self.tasks.constraints(key).is_some_and(Constraints::limits_the_run)
            && let Some((ring_index, _)) = worker.in_flight().next()
        {
            let (worker, task) = (worker.id, self.tasks.reference(key));
            outbox.push(Action::Observe { worker, ring_index, task });
        }
    }

    /// Sets the alarm of a task. A check that its worker relies on takes place in any case.
    pub(crate) fn set_timer(&mut self, key: TaskKey, due: Monotonic) {
        if let Some(constraints) = self.tasks.constraints_mut(key) {
            let due = constraints.section_check.map_or(due, |check| check.min(due));
            self.alarms.set(&mut constraints.alarm, due, Alarm::Task(key));
        }
    }

    /// Clears the alarm of a task.
    pub(crate) fn disarm(&mut self, key: TaskKey) {
        if let Some(constraints) = self.tasks.constraints_mut(key) {
            self.alarms.clear(&mut constraints.alarm);
        }
    }

    /// Handles a task whose alarm has gone off.
    pub(crate) fn expire(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        if let Some(constraints) = self.tasks.constraints_mut(key) {
            constraints.alarm = None;
        }
        match self.tasks[key].state() {
            // Only a queue deadline has an alarm there.
            EntryState::Queued | EntryState::Reserved => {
                self.tasks.stop_waiting(key);
                self.end_task(key, TaskEnd::Expired, outbox);
            }
            EntryState::Paused => {
                self.tasks.stop_waiting(key);
                self.return_to_queue(key, outbox);
            }
            EntryState::Assigned { worker, ring_index } => {
                let worker = self.workers[worker as usize].id;
                let task = self.tasks.reference(key);
                outbox.push(Action::Observe { worker, ring_index, task });
            }
        }
    }

    /// Handles the answer to `Action::Observe`.
    pub(crate) fn observed(
        &mut self,
        now: Monotonic,
        task: TaskRef,
        seen: Observation,
        outbox: &mut Outbox<T>,
    ) {
        let Observation { began, section, usage, stage } = seen;
        let Some((worker, ring_index, _)) = self.assignment(task) else { return };
        let submitted = self.tasks.submitted(task.key);
        let front = self.workers[worker.slot as usize].front();
        let is_first = front == Some(Occupant::Task(task.key));
        let is_distrusted = is_first && !self.settings.trusts_workers;
        let Some(constraints) = self.tasks.constraints_mut(task.key) else { return };
        constraints.section_check = constraints.section_check.filter(|check| *check > now);
        let check = constraints.section_check;
        let is_asked = constraints.is_asked;
        let queue_due = constraints.queue_due(submitted).filter(|_| began.is_none());
        if queue_due.is_some_and(|due| due <= now) {
            outbox.push(Action::Revoke { worker, ring_index, task, why: RevokeWhy::Expire });
            return;
        }
        let presumed = if is_distrusted { constraints.presumed_start(now) } else { None };
        let presumed = presumed.or(is_asked.then_some(now));
        let Some(began) = began.or(constraints.started_at).or(presumed) else {
            let due = constraints.due(now, submitted).or(check);
            if let Some(due) = due {
                self.set_timer(task.key, due);
            }
            return;
        };
        // A worker that writes nonsense into the table must not live longer for it.
        let began = began.min(*constraints.started_at.get_or_insert(presumed.unwrap_or(now)));
        constraints.started_at = Some(began);
        let run_due = constraints.hard_limit.map(|limit| began.saturating_add(limit));
        let cause = if is_asked {
            KillCause::Asked
        } else if run_due.is_some_and(|due| due <= now) {
            KillCause::Deadline
        } else if section.is_some_and(|due| due <= now) {
            KillCause::Section
        } else if usage.is_some_and(|usage| constraints.is_exceeded(usage)) {
            KillCause::Limit
        } else {
            let look =
                usage.and_then(|usage| constraints.next_look(now, usage, self.settings.cores));
            let others = section.into_iter().chain(check).chain(look).chain(queue_due);
            let due = run_due.into_iter().chain(others).min();
            if let Some(due) = due {
                self.set_timer(task.key, due);
            }
            return;
        };
        match self.spared_until(now, task.key, stage) {
            Some(due) => self.set_timer(task.key, due),
            None => self.kill_running(now, worker, task.key, cause, outbox),
        }
    }

    /// Arms the timer for the section of a task. A section that the task opens in its place may
    /// last longer, so the task is checked when the time comes, and not now.
    pub(crate) fn section_begun(&mut self, worker: WorkerId, ring_index: u16, due: Monotonic) {
        let entry = self.workers.live(worker);
        let key = entry.and_then(|entry| match entry.occupant(ring_index)? {
            Occupant::Task(key) => Some(key),
            Occupant::Revoked { .. } => None,
        });
        if let Some(key) = key {
            let constraints = self.tasks.rare_mut(key).constraints.get_or_insert_default();
            let check = constraints.section_check.map_or(due, |check| check.min(due));
            constraints.section_check = Some(check);
            let armed = constraints.alarm.and_then(|alarm| self.alarms.deadline(alarm));
            let due = armed.map_or(due, |armed| due.min(armed));
            self.set_timer(key, due);
        }
    }

    /// Arms the timer of a task that started just when it was to be revoked, if it has a hard
    /// deadline. Its worker cannot change the recorded start later.
    pub(crate) fn started_after_all(&mut self, now: Monotonic, key: TaskKey) {
        let Some(constraints) = self.tasks.constraints_mut(key) else { return };
        constraints.started_at = Some(now);
        let run_due = constraints.hard_limit.map(|limit| now.saturating_add(limit));
        if let Some(due) = run_due.into_iter().chain(constraints.first_look(now)).min() {
            self.set_timer(key, due);
        }
    }
}

impl Constraints {
    /// Returns the time to check a task that has not started and may start at any moment.
    fn due(&self, now: Monotonic, submitted: Monotonic) -> Option<Monotonic> {
        let run_due = self.hard_limit.map(|limit| now.saturating_add(limit));
        self.queue_due(submitted).into_iter().chain(run_due).chain(self.first_look(now)).min()
    }

    /// Returns the time at which the queue deadline expires, if the task has one.
    fn queue_due(&self, submitted: Monotonic) -> Option<Monotonic> {
        let limit = self.queue_limit.filter(|_| !self.began)?;
        Some(submitted.saturating_add(limit))
    }
}
