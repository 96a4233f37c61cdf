//! Takes tasks back before they start.

use brigade_base::{Monotonic, Revocation, WorkerId};

use crate::entry::EntryState;
use crate::{Action, KillCause, Outbox, RevokeWhy, Scheduler, TaskData, TaskEnd, TaskKey, TaskRef};

impl<T: TaskData> Scheduler<T> {
    /// Cancels a task that has not started, or the items of a chunk that have not.
    pub(crate) fn cancel(&mut self, task: TaskRef, outbox: &mut Outbox<T>) {
        let Some(entry) = self.tasks.find(task) else {
            return;
        };
        match entry.state() {
            EntryState::Queued | EntryState::Reserved | EntryState::Paused => {
                self.tasks.stop_waiting(task.key);
                self.end_task(task.key, TaskEnd::Cancelled, outbox);
            }
            EntryState::Assigned { worker, ring_index } => {
                let worker = self.workers[worker as usize].id;
                outbox.push(Action::Revoke { worker, ring_index, task, why: RevokeWhy::Cancel });
            }
        }
    }

    /// Takes a task back from its worker, if it has not started.
    pub(crate) fn revoke(
        &self,
        worker: WorkerId,
        (ring_index, key): (u16, TaskKey),
        why: RevokeWhy,
        outbox: &mut Outbox<T>,
    ) {
        let task = self.tasks.reference(key);
        outbox.push(Action::Revoke { worker, ring_index, task, why });
    }

    /// Handles the answer to `Action::Revoke`: the task was revoked, or had started.
    pub(crate) fn revoke_answer(
        &mut self,
        now: Monotonic,
        task: TaskRef,
        (worker, ring_index): (WorkerId, u16),
        why: RevokeWhy,
        found: Revocation,
        outbox: &mut Outbox<T>,
    ) {
        // An answer to an earlier question says nothing about a task that has moved elsewhere, or
        // was assigned to this worker again.
        let assignment =
            self.assignment(task).filter(|(at, slot, _)| (*at, *slot) == (worker, ring_index));
        let Some((.., attempt)) = assignment else {
            if why == RevokeWhy::Clear {
                // It was revoked for another reason at the same moment, or has finished.
                let never_begins =
                    self.workers.live(worker).is_some_and(|entry| entry.is_revoked(task.id));
                self.answered_behind(now, worker, never_begins, outbox);
            }
            return;
        };
        if why == RevokeWhy::Kill && found != Revocation::Revoked {
            // Its worker may already be dying, for a reason after which the task would run again.
            self.tasks.rare_mut(task.key).retries_left = 0;
            self.cancel_items(task.key);
        }
        if found == Revocation::Neither {
            // Otherwise a worker that overwrites the table could pretend that the task before has
            // ended.
            return self.kill(worker, KillCause::Protocol, outbox);
        }
        if found == Revocation::Begun {
            match why {
                RevokeWhy::Kill => self.kill_begun((worker, ring_index), task, outbox),
                RevokeWhy::Clear => self.answered_behind(now, worker, false, outbox),
                RevokeWhy::Expire => self.started_after_all(now, task.key),
                RevokeWhy::Cancel => self.cancel_items(task.key),
                RevokeWhy::Break | RevokeWhy::Steal => {}
            }
            return;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.mark_revoked(ring_index, task.id, attempt);
        if entry.skip_alarm.is_none() {
            self.watch_skip(now, worker.slot);
        }
        match why {
            RevokeWhy::Cancel | RevokeWhy::Kill => {
                self.end_task(task.key, TaskEnd::Cancelled, outbox);
            }
            RevokeWhy::Expire => self.end_task(task.key, TaskEnd::Expired, outbox),
            RevokeWhy::Clear => {
                self.counters.requeued += self.tasks.count(task.key);
                self.return_to_queue(task.key, outbox);
                self.answered_behind(now, worker, true, outbox);
            }
            RevokeWhy::Break => self.end_task(task.key, TaskEnd::Broken, outbox),
            RevokeWhy::Steal => {
                self.counters.stolen += self.tasks.count(task.key);
                self.return_to_queue(task.key, outbox);
                // There may be more idle workers.
                self.balance_due = true;
            }
        }
    }
}
