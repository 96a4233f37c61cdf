//! Which task goes to which worker, and when another process is wanted.
//!
//! The oldest task goes to an idle worker. With none idle it waits, or is prefetched: written
//! into the link of a busy worker, so that the worker finds it without a wake-up. How many may
//! be prefetched follows from how long tasks take: a few hundred microseconds of work hide the
//! way there and back, and a long task gets nobody behind it. What was prefetched and has not
//! begun is taken back when a worker has nothing to do.

use std::sync::Arc;
use std::time::Duration;

use super::{Action, Machine, Now, Occupant, Outbox, Phase, RevokeWhy, TaskRef, WorkerState};
use crate::machine::task::Place;

/// Work that is kept under way to a worker: several wake-ups' worth (25 to 60 µs each on a small virtual machine).
const PREFETCHED_WORK: Duration = Duration::from_micros(500);

impl<T> Machine<T> {
    /// Hands out what can be handed out, asks for processes that are missing.
    pub(super) fn assign(&mut self, now: Now, outbox: &mut Outbox<T>) {
        while !self.queue.is_empty() {
            let Some(slot) = self.take_idle().or_else(|| self.find_room()) else {
                break;
            };
            self.send_next_to(slot, outbox);
        }
        if self.queue.is_empty() {
            self.steal_for_the_idle(outbox);
        }
        if self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
    }

    fn take_idle(&mut self) -> Option<u32> {
        let slot = self.idle.pop()?;
        debug_assert_eq!(self.workers[slot as usize].state, WorkerState::Ready);
        Some(slot)
    }

    /// A busy worker that may get one more.
    fn find_room(&mut self) -> Option<u32> {
        let depth = self.depth();
        if depth <= 1 {
            return None;
        }
        let count = self.workers.len();
        let offset = (0..count).find(|offset| {
            let worker = &self.workers[(self.cursor + offset) % count];
            worker.state == WorkerState::Ready && worker.load() < depth
        })?;
        let index = (self.cursor + offset) % count;
        self.cursor = (index + 1) % count;
        Some(self.workers[index].id.slot)
    }

    /// Frames that a worker may have under way, the running one included.
    fn depth(&self) -> usize {
        let fits = PREFETCHED_WORK.as_nanos() / self.mean_run.as_nanos().max(1);
        usize::try_from(fits).unwrap_or(usize::MAX).clamp(1, usize::from(self.settings.credit))
    }

    fn send_next_to(&mut self, slot: u32, outbox: &mut Outbox<T>) {
        let Some(key) = self.queue.pop_front(&mut self.tasks) else {
            return;
        };
        let worker = &mut self.workers[slot as usize];
        let ahead = u16::try_from(worker.load()).unwrap_or(u16::MAX);
        let link_slot = worker.push(key);
        let task = &mut self.tasks[key.index()];
        task.place = Place::Assigned { worker: slot, link_slot };
        outbox.push(Action::Send {
            worker: worker.id,
            link_slot,
            key,
            id: task.id,
            attempt: task.attempt,
            ahead,
        });
    }

    /// Asks back the newest task of the most loaded worker, one for each idle worker.
    fn steal_for_the_idle(&mut self, outbox: &mut Outbox<T>) {
        if self.idle.is_empty() {
            return;
        }
        let victim = self
            .workers
            .iter()
            .filter(|worker| worker.state == WorkerState::Ready && worker.tasks() > 1)
            .max_by_key(|worker| worker.tasks());
        let Some(victim) = victim else { return };
        let newest = victim.in_flight().rev().find_map(|(link_slot, occupant)| match occupant {
            Occupant::Task(key) => Some((link_slot, key)),
            Occupant::Revoked { .. } => None,
        });
        if let Some((link_slot, key)) = newest {
            let task = TaskRef { key, id: self.tasks[key.index()].id };
            outbox.push(Action::Revoke {
                worker: victim.id,
                link_slot,
                task,
                why: RevokeWhy::Steal,
            });
        }
    }

    /// One more process for each queued task that no starting process will take; all of them during a warm-up.
    pub(super) fn spawn_for_demand(&mut self, now: Now, outbox: &mut Outbox<T>) {
        let starting =
            self.workers.iter().filter(|worker| worker.state == WorkerState::Starting).count();
        let wanted = if self.warming {
            self.workers.len()
        } else {
            self.queue.len().saturating_sub(starting)
        };
        self.spawn_up_to(wanted, now, outbox);
    }

    /// Whether a process is wanted that is not there.
    pub(super) fn has_demand(&self) -> bool {
        self.broken.is_none() && (self.warming || !self.queue.is_empty())
    }

    /// Asks for all processes that the pool may have, until they are all ready at once.
    pub(super) fn warm_up(&mut self, now: Now, outbox: &mut Outbox<T>) {
        self.warming = self.ready_workers() < self.workers.len();
        self.not_warmed = None;
        self.spawn_for_demand(now, outbox);
    }

    /// Not all workers can be had; those that are there go on.
    pub(super) fn give_up_warming(&mut self, reason: Arc<str>) {
        if std::mem::take(&mut self.warming) {
            self.not_warmed = Some(reason);
        }
    }

    pub(super) fn spawn_up_to(&mut self, wanted: usize, now: Now, outbox: &mut Outbox<T>) {
        if self.broken.is_some() || !matches!(self.phase, Phase::Running | Phase::Draining { .. }) {
            return;
        }
        if !self.budget.may_start(now) {
            outbox.push(Action::Rearm);
            return;
        }
        let credit = self.settings.credit;
        let vacant = self.workers.iter_mut().filter(|worker| worker.state == WorkerState::Vacant);
        for worker in vacant.take(wanted) {
            let worker = worker.begin_start(credit);
            self.counters.respawned += u64::from(worker.generation > 1);
            outbox.push(Action::Spawn { worker });
        }
    }
}
