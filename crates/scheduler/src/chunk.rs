//! Chunks: several items of a map that travel as one task.
//!
//! Items start, fail and run again one by one, by the rules for tasks. While a chunk is under way,
//! the scheduler knows nothing of its items: an item that a worker finishes costs no event. When
//! items come back, because the worker returned them or died, or because they failed and run again,
//! the chunk is *divided*. The finished items end, the item that ran becomes a task of its own, and
//! the items that have not started return to the queue as one or more tasks. Consecutive items that
//! failed become a task together, which waits for their next attempt. Each part keeps the time of
//! submission, the deadlines and the retries of the whole.

use brigade_base::{Monotonic, WorkerId};

use crate::{
    FailedItems, InterruptedAttempt, KillCause, Outbox, RetryWhy, Returned, Scheduler, TaskData,
    TaskEnd, TaskKey,
};

impl<T: TaskData> Scheduler<T> {
    /// Ends a chunk of which the worker returns some items, or some failed, and queues these again.
    pub(crate) fn returned(&mut self, now: Monotonic, returned: Returned, outbox: &mut Outbox<T>) {
        let Returned { worker, task, attempt, run_time, worn, finished, parts, failed } = returned;
        let Some(key) = self.reported(worker, task, attempt, outbox) else { return };
        let items = self.tasks.items(key);
        if items.is_none_or(|items| items < finished || (items == finished && failed.is_empty())) {
            return self.kill(worker, KillCause::Protocol, outbox);
        }
        self.free(worker.slot, run_time);
        // From newest to oldest, so that the front of the queue keeps the order of submission.
        if items > Some(finished) {
            let rest = self.split_off(key, finished.get());
            self.requeue(rest, parts, worker, outbox);
        }
        self.end_finished(now, key, &failed, worker, TaskEnd::Reported, outbox);
        self.after_finished(now, worker, worn, outbox);
    }

    /// Ends a task that a worker has finished, apart from the items that failed and run again.
    pub(crate) fn end_finished(
        &mut self,
        now: Monotonic,
        key: TaskKey,
        failed: &[FailedItems],
        worker: WorkerId,
        end: TaskEnd,
        outbox: &mut Outbox<T>,
    ) {
        for &FailedItems { first, count, failure } in failed.iter().rev() {
            if !self.runs_again(key, failure) {
                continue;
            }
            let behind = first + count.get();
            if u64::from(behind) < self.tasks.count(key) {
                let behind = self.split_off(key, behind);
                self.end_task(behind, TaskEnd::Finished, outbox);
            }
            let again = if first > 0 { self.split_off(key, first) } else { key };
            self.try_again(now, again, worker, RetryWhy::Failure(failure), outbox);
            if first == 0 {
                return;
            }
        }
        self.end_task(key, end, outbox);
    }

    /// Handles an attempt that was under way when its worker died.
    pub(crate) fn interrupted(
        &mut self,
        now: Monotonic,
        key: TaskKey,
        interrupted: &InterruptedAttempt,
        worker: WorkerId,
        kill_cause: Option<KillCause>,
        outbox: &mut Outbox<T>,
    ) {
        let Some(items) = self.tasks.items(key) else {
            return self.interrupted_task(now, key, worker, kill_cause, outbox);
        };
        let finished = interrupted.finished.min(items.get());
        let runs = interrupted.in_item && finished < items.get();
        let started = finished + u32::from(runs);
        // From newest to oldest, so that the front of the queue keeps the order of submission.
        if started == 0 {
            return self.requeue(key, interrupted.parts, worker, outbox);
        }
        if started < items.get() {
            let rest = self.split_off(key, started);
            self.requeue(rest, interrupted.parts, worker, outbox);
        }
        if runs {
            let item = if finished > 0 { self.split_off(key, finished) } else { key };
            self.interrupted_task(now, item, worker, kill_cause, outbox);
        }
        if finished > 0 {
            let failed = &interrupted.failed;
            self.end_finished(now, key, failed, worker, TaskEnd::Finished, outbox);
        }
    }

    /// Splits a task that waits nowhere into at most `parts` parts of about equal size.
    pub(crate) fn divide(&mut self, key: TaskKey, parts: u32) -> Vec<TaskKey> {
        let mut all = vec![key];
        let Some(items) = self.tasks.items(key) else { return all };
        let size = items.get().div_ceil(parts.max(1));
        let mut last = key;
        while self.tasks.items(last).is_some_and(|left| left.get() > size) {
            last = self.split_off(last, size);
            all.push(last);
        }
        all
    }

    fn split_off(&mut self, key: TaskKey, at: u32) -> TaskKey {
        self.tasks.split_off(key, at, self.split_data)
    }

    /// Gives a chunk up that a worker has started: no item starts after the one that runs.
    pub(crate) fn cancel_items(&mut self, key: TaskKey) {
        if self.tasks.items(key).is_some() {
            let task = self.tasks.rare_mut(key);
            task.retries_left = 0;
            task.constraints.get_or_insert_default().cancelled = true;
        }
    }
}
