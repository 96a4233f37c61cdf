//! Runs tasks again: after the death of their worker, after a deadline, and after failures of the
//! function that they are to be retried for. The next attempt waits in the queue at once, or after
//! a pause.

use std::time::Duration;

use brigade_base::{Attempt, Monotonic, TaskId, WorkerId};

use crate::alarms::Alarm;
use crate::task::Constraints;
use crate::{Action, Failure, Outbox, RetryWhy, Scheduler, TaskData, TaskKey};

impl<T: TaskData> Scheduler<T> {
    /// Returns `true` if a task, or items of it, run again after a failure of the function.
    pub(crate) fn runs_again(&self, key: TaskKey, failure: Failure) -> bool {
        let is_wanted = self.tasks.constraints(key).is_some_and(|it| it.retries_after(failure));
        is_wanted
            && self.tasks.retries_left(key) > 0
            && !self.lifecycle.is_broken()
            // The outcome of this attempt says more than that the next one was cancelled.
            && !self.lifecycle.phase().cancels_pending()
            && !self.has_lost_its_slot(key)
    }

    pub(crate) fn has_lost_its_slot(&self, key: TaskKey) -> bool {
        self.tasks.slot(key).is_some_and(|slot| slot as usize >= self.workers.target())
    }

    /// Starts the next attempt at a task that has retries left and waits nowhere. Items of a chunk
    /// have the pause of the first one.
    pub(crate) fn try_again(
        &mut self,
        now: Monotonic,
        key: TaskKey,
        worker: WorkerId,
        why: RetryWhy,
        outbox: &mut Outbox<T>,
    ) {
        let task = self.tasks.reference(key);
        let rare = self.tasks.rare_mut(key);
        let failed = rare.attempt;
        rare.retries_left -= 1;
        rare.attempt = failed.next();
        let attempt = rare.attempt;
        let mut pause = Duration::ZERO;
        if let Some(constraints) = &mut rare.constraints {
            constraints.began = true;
            pause = constraints.pause(task.id, failed);
        }
        self.counters.retried += self.tasks.count(key);
        outbox.push(Action::Retried { task, attempt, worker, why });
        // A draining pool waits for the pause; one that cancels what is pending does not.
        let is_pending = !self.lifecycle.phase().cancels_pending() && !self.has_lost_its_slot(key);
        if pause.is_zero() || !is_pending {
            return self.return_to_queue(key, outbox);
        }
        self.tasks.pause(key);
        if let Some(constraints) = self.tasks.constraints_mut(key) {
            constraints.section_check = None;
            let due = now.saturating_add(pause);
            self.alarms.set(&mut constraints.alarm, due, Alarm::Task(key));
        }
    }
}

impl Constraints {
    fn retries_after(&self, failure: Failure) -> bool {
        match failure {
            Failure::Panic => self.retries_panics,
            Failure::Error => self.retries_errors,
        }
    }

    /// Returns the pause after the failed attempt at a task.
    pub(crate) fn pause(&self, task: TaskId, failed: Attempt) -> Duration {
        self.retry.pause(failed.get(), task.get())
    }
}
