//! How many workers there are: between the fewest and the most that are wanted, and each of them not for too long.
//!
//! A worker that is no longer wanted is *retired*: what has not begun is taken back, and the word to leave follows the frame
//! that it runs. It may take as long as that task takes; the ladder that ends a worker begins when it has nothing left.

use std::time::Duration;

use brigade_wire::WorkerId;

use super::{
    Action, End, KillCause, Machine, Now, Occupant, Outbox, Phase, RevokeWhy, TaskRef, WorkerEntry,
    WorkerState,
};

impl<T> Machine<T> {
    /// Processes that are there and were not asked to leave.
    pub(super) fn staying(&self) -> usize {
        let stays = |worker: &&WorkerEntry| {
            matches!(worker.state, WorkerState::Starting | WorkerState::Ready)
        };
        self.workers.iter().filter(stays).count()
    }

    /// How many processes are kept although there is nothing to do.
    pub(super) fn fewest(&self) -> usize {
        let open = self.phase == Phase::Running && self.broken.is_none() && !self.quiescent;
        if open { self.settings.min_workers.min(self.target) } else { 0 }
    }

    /// Another number of workers from now on.
    pub(super) fn resize(&mut self, now: Now, target: usize, outbox: &mut Outbox<T>) {
        if self.phase != Phase::Running || self.broken.is_some() {
            return;
        }
        for slot in self.workers.len()..target {
            let slot = u32::try_from(slot).expect("slots are few");
            self.workers.push(WorkerEntry::vacant(slot));
        }
        self.target = target;
        for index in target..self.workers.len() {
            while let Some(key) = self.workers[index].reserved.pop_front() {
                self.reserved -= 1;
                self.counters.cancelled += 1;
                self.end_task(key, End::Cancelled, outbox);
            }
            self.retire(now, self.workers[index].id, "the pool has become smaller", outbox);
        }
        self.is_still_warming();
    }

    /// Gives back the processes that have nothing to do, until there is work again.
    pub(super) fn quiesce(&mut self, now: Now, outbox: &mut Outbox<T>) {
        self.quiescent = true;
        self.stop_warming();
        while let Some(slot) = self.idle.last().copied() {
            self.retire(now, self.workers[slot as usize].id, "the pool rests", outbox);
        }
        for index in 0..self.workers.len() {
            if self.workers[index].state == WorkerState::Starting && self.queue.is_empty() {
                self.retire(now, self.workers[index].id, "the pool rests", outbox);
            }
        }
    }

    /// A worker has become ready or has answered its last frame.
    pub(super) fn has_nothing_to_do(&mut self, now: Now, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[slot as usize];
        match worker.state {
            WorkerState::Ready => {
                worker.idle_since = now;
                self.idle.push(slot);
                if self.is_to_rest(slot) {
                    let id = self.workers[slot as usize].id;
                    self.retire(now, id, "the pool rests", outbox);
                } else if let Some(timeout) = self.settings.idle_timeout {
                    self.rearm_for(now.saturating_add(timeout), outbox);
                }
            }
            WorkerState::Stopping { .. } => self.begin_ladder(now, slot as usize, outbox),
            WorkerState::Vacant | WorkerState::Starting | WorkerState::Killing => {}
        }
    }

    /// Whether a worker with nothing to do leaves, as the pool was sent to rest while it had something.
    fn is_to_rest(&self, slot: u32) -> bool {
        self.quiescent
            && self.phase == Phase::Running
            && self.broken.is_none()
            && self.queue.is_empty()
            && self.workers[slot as usize].reserved.is_empty()
    }

    /// A worker that was asked to leave has nothing to do any more, and gets the grace for leaving.
    pub(super) fn begin_ladder(&mut self, now: Now, index: usize, outbox: &mut Outbox<T>) {
        let worker = &mut self.workers[index];
        if worker.stop_deadline.is_none() {
            let deadline = now.saturating_add(self.settings.stop_grace);
            worker.stop_deadline = Some(deadline);
            self.rearm_for(deadline, outbox);
        }
    }

    /// Workers that have been idle, or have lived, for too long.
    pub(super) fn retire_the_old(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if let Some(timeout) = self.settings.idle_timeout {
            // The first in the list has been idle for the longest time.
            while self.staying() > self.fewest()
                && let Some(slot) = self.idle.first().copied()
                && self.workers[slot as usize].idle_since.saturating_add(timeout) <= now
            {
                self.retire(now, self.workers[slot as usize].id, "it had nothing to do", outbox);
            }
        }
        if self.settings.max_age.is_some() {
            for index in 0..self.workers.len() {
                if self.workers[index].retire_at.is_some_and(|time| time <= now) {
                    self.retire(now, self.workers[index].id, "it has reached its age", outbox);
                }
            }
        }
    }

    /// When `retire_the_old` is due.
    pub(super) fn retirement_due(&self) -> Option<Now> {
        let idle = self.settings.idle_timeout.filter(|_| self.staying() > self.fewest());
        let idle = idle.and_then(|timeout| {
            let first = self.idle.first()?;
            Some(self.workers[*first as usize].idle_since.saturating_add(timeout))
        });
        let ready = self.workers.iter().filter(|worker| worker.state == WorkerState::Ready);
        ready.filter_map(|worker| worker.retire_at).chain(idle).min()
    }

    /// Sends a worker home. What it runs it may finish; what has not begun goes elsewhere.
    pub(super) fn retire(
        &mut self,
        now: Now,
        id: WorkerId,
        why: &'static str,
        outbox: &mut Outbox<T>,
    ) {
        let index = id.slot as usize;
        let worker = &mut self.workers[index];
        match worker.state {
            WorkerState::Ready => {}
            WorkerState::Starting => return self.kill(id, KillCause::Unwanted, outbox),
            WorkerState::Vacant | WorkerState::Stopping { .. } | WorkerState::Killing => return,
        }
        worker.state = WorkerState::Stopping { terminated: false };
        worker.retire_at = None;
        self.complete = false;
        self.idle.retain(|slot| *slot != id.slot);
        outbox.push(Action::Retired { worker: id, why });
        let worker = &self.workers[index];
        // From the newest to the oldest, so that the queue's front keeps the order of submission.
        for (link_slot, occupant) in worker.in_flight().rev() {
            if let Occupant::Task(key) = occupant {
                let task = TaskRef { key, id: self.tasks[key.index()].id };
                outbox.push(Action::Revoke { worker: id, link_slot, task, why: RevokeWhy::Steal });
            }
        }
        outbox.push(Action::Stop { worker: id });
        if worker.load() == 0 {
            self.begin_ladder(now, index, outbox);
        }
    }

    /// When a worker that is ready now has reached its age.
    pub(super) fn end_of_life(&self, now: Now, worker: WorkerId) -> Option<Now> {
        let age = self.settings.max_age?;
        Some(now.saturating_add(age.saturating_sub(jitter(age, worker))))
    }

    /// After how many tasks a worker leaves.
    pub(in crate::machine) fn allowance(&self, worker: WorkerId) -> Option<u64> {
        let most = self.settings.max_tasks?;
        Some(most - u64::from(spread(worker)) * (most / u64::from(JITTER)) / u64::from(u8::MAX))
    }
}

/// Workers that were started together do not all leave at once: each up to this share earlier.
const JITTER: u32 = 10;

fn jitter(of: Duration, worker: WorkerId) -> Duration {
    // Divided first: the longest time may be given.
    of / (JITTER * u32::from(u8::MAX)) * u32::from(spread(worker))
}

/// A number that looks random, and is the same each time for a worker.
fn spread(worker: WorkerId) -> u8 {
    let bits = (u64::from(worker.slot) << 32 | u64::from(worker.generation)) + 1;
    // The multiplier of Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): high bits are well mixed.
    bits.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0]
}
