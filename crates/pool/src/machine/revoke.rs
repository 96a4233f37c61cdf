//! Tasks that are taken back before they begin, and why.

use brigade_wire::WorkerId;
use brigade_wire::slots::Revocation;

use super::task::Place;
use super::{Action, End, KillCause, Machine, Now, Outbox, RevokeWhy, TaskRef};

impl<T> Machine<T> {
    /// A caller takes a task back.
    pub(super) fn cancel(&mut self, now: Now, task: TaskRef, outbox: &mut Outbox<T>) {
        let Some(entry) = self.tasks.get(task.key.index()).filter(|entry| entry.id == task.id)
        else {
            return;
        };
        match entry.place {
            Place::Queued | Place::Reserved => {
                self.take_out(task.key);
                self.end_cancelled(task.key, outbox);
                self.settle(now, outbox);
            }
            Place::Assigned { worker, link_slot } => {
                let worker = self.workers[worker as usize].id;
                outbox.push(Action::Revoke { worker, link_slot, task, why: RevokeWhy::Cancel });
            }
        }
    }

    /// A worker's task was taken back, or had begun.
    pub(super) fn revoke_answer(
        &mut self,
        now: Now,
        task: TaskRef,
        (worker, link_slot): (WorkerId, u16),
        why: RevokeWhy,
        found: Revocation,
        outbox: &mut Outbox<T>,
    ) {
        // An answer to an earlier question says nothing of a task that has gone elsewhere, or come here once more.
        let assignment =
            self.assignment(task).filter(|(at, slot, _)| (*at, *slot) == (worker, link_slot));
        let Some((.., attempt)) = assignment else {
            if why == RevokeWhy::Clear {
                // It was taken back for another reason in the same moment, or has been answered.
                let never_begins = self.live(worker).is_some_and(|entry| entry.is_revoked(task.id));
                self.cleared(now, worker, never_begins, outbox);
            }
            return;
        };
        if found == Revocation::Neither {
            // Whoever writes over the table could pretend otherwise that the task before has ended.
            if why == RevokeWhy::Kill {
                self.tasks[task.key.index()].retries_left = 0;
            }
            return self.kill(worker, KillCause::Protocol, outbox);
        }
        if found == Revocation::Begun {
            match why {
                RevokeWhy::Kill => {
                    // Its worker may be on its way to death already, for a reason after which it would run again.
                    self.tasks[task.key.index()].retries_left = 0;
                    self.condemn(now, worker, task.key, KillCause::Asked, outbox);
                }
                RevokeWhy::Clear => self.cleared(now, worker, false, outbox),
                RevokeWhy::Expire => self.began_after_all(now, task.key, outbox),
                RevokeWhy::Cancel | RevokeWhy::Break | RevokeWhy::Steal => {}
            }
            return;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.mark_revoked(link_slot, task.id, attempt);
        match why {
            RevokeWhy::Cancel | RevokeWhy::Kill => {
                self.end_cancelled(task.key, outbox);
                self.settle(now, outbox);
            }
            RevokeWhy::Expire => {
                self.end_expired(task.key, outbox);
                self.settle(now, outbox);
            }
            RevokeWhy::Clear => {
                self.counters.requeued += 1;
                self.put_back(task.key, outbox);
                self.cleared(now, worker, true, outbox);
                self.assign(now, outbox);
            }
            RevokeWhy::Break => {
                self.counters.refused_by_break += 1;
                self.end_task(task.key, End::Broken, outbox);
                self.settle(now, outbox);
            }
            RevokeWhy::Steal => {
                self.counters.stolen += 1;
                self.put_back(task.key, outbox);
                self.assign(now, outbox);
                // There may be more workers with nothing to do.
                self.balance(now, outbox);
            }
        }
    }
}
