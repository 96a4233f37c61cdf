//! Which task goes to which worker, and when another process is wanted.
//!
//! The oldest task goes to an idle worker. With none idle it waits, or is prefetched: written
//! into the link of a busy worker, so that the worker finds it without a wake-up. How many may
//! be prefetched follows from how long tasks take: a few hundred microseconds of work hide the
//! way there and back. One task is prefetched behind another as long as the way would be felt, and a long task gets
//! nobody behind it. What was prefetched and has not begun is taken back when a worker has nothing to do.
//!
//! Tasks that are shorter than a wake-up are packed: they go to the worker that is awake, although another is idle, because
//! to wake that one would take longer.
//!
//! What is sent behind another task counts on that one to be as short as usual. While another worker is idle, or could be
//! started, the rescue checks that: it finds within two milliseconds that a worker makes no progress, or has far more than it
//! would be sent now, and takes back what waits there. The queue then asks for processes as for any other task.

use std::sync::Arc;
use std::time::Duration;

use super::{Action, Machine, Now, Outbox, Phase, TaskKey, WorkerEntry, WorkerState};
use crate::machine::task::Place;

/// Work that is kept under way to a worker: several wake-ups' worth (25 to 60 µs each on a small virtual machine).
const PREFETCHED_WORK: Duration = Duration::from_micros(500);

/// Of tasks up to this one is prefetched: two wake-ups between two of them would be a percent of ten milliseconds.
const WORTH_PREFETCHING: Duration = Duration::from_millis(50);

/// Tasks up to this are packed: they cost less than to wake a worker for them.
pub(super) const SHORT: Duration = Duration::from_micros(2);

/// Short tasks go to one worker until it has so many, and then to the next one.
const PACK: usize = 64;

/// Longer runs count as this.
const LONGEST_RUN: Duration = Duration::from_secs(1);

/// Runs in a row that may be exceptions, each much longer than usual.
const EXCEPTIONS: u8 = 2;

impl<T> Machine<T> {
    /// Hands out what can be handed out, asks for processes that are missing.
    pub(super) fn assign(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if self.reserved > 0 {
            self.assign_reserved(now, outbox);
        }
        while !self.queue.is_empty() {
            let slot = self.take_awake(now, outbox).or_else(|| self.take_idle());
            let Some(slot) = slot.or_else(|| self.find_room(now, outbox)) else {
                break;
            };
            let Some(key) = self.queue.pop_front(&mut self.tasks) else { break };
            self.send_to(now, slot, key, outbox);
        }
        if !self.complete && self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
    }

    /// Tasks that only one worker may run, to those workers.
    fn assign_reserved(&mut self, now: Now, outbox: &mut Outbox<T>) {
        for index in 0..self.workers.len() {
            while let worker = &mut self.workers[index]
                && worker.takes_tasks()
                && worker.load() < usize::from(self.settings.credit)
                && let Some(key) = worker.reserved.pop_front()
            {
                let slot = worker.id.slot;
                self.reserved -= 1;
                self.idle.retain(|idle| *idle != slot);
                self.send_to(now, slot, key, outbox);
            }
        }
    }

    /// A task that had left the queue waits again, before all others. If its worker is gone for good it is cancelled.
    pub(super) fn put_back(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        match self.tasks[key.index()].slot() {
            None => self.queue.push_front(&mut self.tasks, key),
            Some(slot) if slot as usize >= self.target => {
                return self.end_cancelled(key, outbox);
            }
            Some(slot) => {
                self.tasks[key.index()].place = Place::Reserved;
                self.workers[slot as usize].reserved.push_front(key);
                self.reserved += 1;
            }
        }
        self.watch_waiting(key, outbox);
    }

    /// Takes a waiting task out of where it waits.
    pub(super) fn take_out(&mut self, key: TaskKey) {
        let entry = &self.tasks[key.index()];
        match (entry.place, entry.slot()) {
            (Place::Queued, _) => self.queue.remove(&mut self.tasks, key),
            (Place::Reserved, Some(slot)) => {
                self.workers[slot as usize].reserved.retain(|other| *other != key);
                self.reserved -= 1;
            }
            (Place::Reserved, None) | (Place::Assigned { .. }, _) => {}
        }
    }

    /// All waiting tasks.
    pub(super) fn take_all_out(&mut self) -> Vec<TaskKey> {
        let mut all = Vec::with_capacity(self.queue.len() + self.reserved);
        while let Some(key) = self.queue.pop_front(&mut self.tasks) {
            all.push(key);
        }
        for worker in &mut self.workers {
            all.extend(worker.reserved.drain(..));
        }
        self.reserved = 0;
        all
    }

    /// The worker that was given the last task, if it is to get short ones although another is idle.
    #[inline]
    fn take_awake(&mut self, now: Now, outbox: &mut Outbox<T>) -> Option<u32> {
        if self.usual_run > SHORT || self.idle.is_empty() {
            return None;
        }
        let worker = &self.workers[self.current];
        let most = PACK.min(self.settings.credit.into());
        if !worker.takes_more_tasks() || !(1..most).contains(&worker.load()) {
            return None;
        }
        let slot = worker.id.slot;
        self.plan_rescue(now, outbox);
        Some(slot)
    }

    /// Whether a process may be started beside those that are there.
    pub(super) fn has_vacancy(&self) -> bool {
        let vacant = |worker: &WorkerEntry| worker.state == WorkerState::Vacant;
        !self.complete && self.may_have_workers() && self.workers[..self.target].iter().any(vacant)
    }

    /// Whether processes are started at all.
    fn may_have_workers(&self) -> bool {
        self.broken.is_none() && matches!(self.phase, Phase::Running | Phase::Draining { .. })
    }

    fn take_idle(&mut self) -> Option<u32> {
        let slot = self.idle.pop()?;
        debug_assert_eq!(self.workers[slot as usize].state, WorkerState::Ready);
        Some(slot)
    }

    /// A busy worker that may get one more.
    fn find_room(&mut self, now: Now, outbox: &mut Outbox<T>) -> Option<u32> {
        let depth = self.depth();
        if depth <= 1 {
            return None;
        }
        let has_room = |worker: &WorkerEntry| worker.takes_more_tasks() && worker.load() < depth;
        let current = &self.workers[self.current];
        let slot = if has_room(current) && !current.load().is_multiple_of(PACK) {
            current.id.slot
        } else {
            let count = self.workers.len();
            (self.current + 1..=self.current + count)
                .map(|index| &self.workers[index % count])
                .find(|worker| has_room(worker))?
                .id
                .slot
        };
        if !self.complete {
            self.plan_rescue(now, outbox);
        }
        Some(slot)
    }

    /// Frames that a worker may have under way, the running one included.
    pub(super) fn depth(&self) -> usize {
        let fits = PREFETCHED_WORK.as_nanos() / self.usual_run.as_nanos().max(1);
        let least = if self.usual_run <= WORTH_PREFETCHING { 2 } else { 1 };
        usize::try_from(fits).unwrap_or(usize::MAX).max(least).min(self.settings.credit.into())
    }

    /// A moving average in which a single run counts for at most four usual ones: a worker that had to give up its core
    /// in the middle of a short task tells of milliseconds, and must not end the prefetching. Several in a row are no
    /// exceptions.
    pub(super) fn learn_run_time(&mut self, run_time: Duration) {
        // Any number may come from a worker.
        let run_time = run_time.min(LONGEST_RUN);
        let most = self.usual_run * 4 + Duration::from_micros(1);
        let counted = if run_time <= most {
            self.long_runs = 0;
            run_time
        } else if self.long_runs < EXCEPTIONS {
            self.long_runs += 1;
            most
        } else {
            run_time
        };
        self.usual_run = (self.usual_run * 7 + counted) / 8;
    }

    fn send_to(&mut self, now: Now, slot: u32, key: TaskKey, outbox: &mut Outbox<T>) {
        self.current = slot as usize;
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
        if task.terms.is_some() {
            self.watch_sent(now, key, outbox);
        }
        if self.settings.max_tasks.is_some() {
            self.retire_when_used_up(slot, outbox);
        }
    }

    /// The last task that a worker does is followed by the word to leave.
    fn retire_when_used_up(&mut self, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &self.workers[slot as usize];
        let id = worker.id;
        let sent = worker.completed + worker.tasks() as u64;
        if self.allowance(id).is_some_and(|allowance| sent >= allowance) {
            let worker = &mut self.workers[slot as usize];
            worker.state = WorkerState::Stopping { terminated: false };
            worker.retire_at = None;
            self.complete = false;
            outbox.push(Action::Retired { worker: id, why: "it has done its number of tasks" });
            outbox.push(Action::Stop { worker: id });
        }
    }

    /// One more process for each queued task that no starting process will take; all of them during a warm-up; those that
    /// are kept in any case; and those that have tasks of their own.
    pub(super) fn spawn_for_demand(&mut self, now: Now, outbox: &mut Outbox<T>) {
        let starting =
            self.workers.iter().filter(|worker| worker.state == WorkerState::Starting).count();
        let for_tasks = self.queue.len().saturating_sub(starting);
        let wanted = for_tasks.max(self.fewest().saturating_sub(self.staying()));
        self.spawn_up_to(wanted, now, outbox);
    }

    /// Whether a process is wanted that is not there.
    pub(super) fn has_demand(&self) -> bool {
        self.may_have_workers()
            && (self.warming
                || !self.queue.is_empty()
                || self.reserved > 0
                || self.staying() < self.fewest())
    }

    /// Asks for all processes that the pool may have, until each has become ready.
    pub(super) fn warm_up(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if self.phase != Phase::Running {
            return;
        }
        self.quiescent = false;
        for worker in self.workers.iter_mut().take(self.target) {
            worker.to_warm = worker.state != WorkerState::Ready;
        }
        self.is_still_warming();
        self.not_warmed = None;
        self.spawn_for_demand(now, outbox);
    }

    /// Each slot becomes ready once, which does not mean that all are at the same time: workers come and go.
    pub(super) fn is_still_warming(&mut self) {
        self.warming = self.workers.iter().take(self.target).any(|worker| worker.to_warm);
    }

    pub(super) fn stop_warming(&mut self) {
        for worker in &mut self.workers {
            worker.to_warm = false;
        }
        self.warming = false;
    }

    /// Not all workers can be had; those that are there go on.
    pub(super) fn give_up_warming(&mut self, reason: Arc<str>) {
        if self.warming {
            self.stop_warming();
            self.not_warmed = Some(reason);
        }
    }

    pub(super) fn spawn_up_to(&mut self, wanted: usize, now: Now, outbox: &mut Outbox<T>) {
        if !self.may_have_workers() {
            return;
        }
        if self.budget.may_start(now) {
            self.start_vacant(wanted, outbox);
        }
        self.rearm_for_next(outbox);
    }

    fn start_vacant(&mut self, wanted: usize, outbox: &mut Outbox<T>) {
        let credit = self.settings.credit;
        let (round, mut left) = (self.budget.round(), wanted);
        for worker in self.workers.iter_mut().take(self.target) {
            // One that has tasks of its own is wanted in any case, and one that is to be warm.
            let own = !worker.reserved.is_empty() || worker.to_warm;
            if worker.state != WorkerState::Vacant || (left == 0 && !own) {
                continue;
            }
            left = left.saturating_sub(1);
            worker.start_round = round;
            let worker = worker.begin_start(credit);
            self.counters.respawned += u64::from(worker.generation > 1);
            outbox.push(Action::Spawn { worker });
        }
    }
}
