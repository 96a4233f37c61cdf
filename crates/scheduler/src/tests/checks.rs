//! Checks that hold in the simulated world after each event, and after time has passed.

use std::time::Duration;

use brigade_base::WorkerId;

use super::fake_worker::{FakePhase, FakeWorker, Frame, FrameState, answers};
use super::model::Data;
use super::world::World;
use crate::{Event, KillCause, TaskEnd, WorkerState};

/// The state before an event, as far as it determines what may follow.
pub(super) struct Before {
    spawns: usize,
    /// `true` if processes may be started for more than the tasks that wait now.
    may_spawn: bool,
}

/// Packed tasks are checked every millisecond. Their worker may have made progress the first time,
/// and they may have been packed behind another long task the second time.
const RESCUED_AFTER: Duration = Duration::from_millis(4);

impl World {
    pub(super) fn before(&self, event: &Event<Data>) -> Before {
        let replaced = match *event {
            Event::Died { worker, .. } => {
                self.scheduler.workers.live(worker).is_some_and(|entry| {
                    let asked = entry.state == WorkerState::Stopping;
                    !asked && entry.kill_cause != Some(KillCause::Unwanted)
                })
            }
            Event::Reaped { worker } => {
                let entry = self.scheduler.workers.live(worker);
                entry.is_some_and(|entry| entry.reported == Some(true))
            }
            _ => false,
        };
        Before { spawns: self.spawns, may_spawn: replaced || self.has_demand() }
    }

    fn has_demand(&self) -> bool {
        self.scheduler.is_warming()
            || self.min_workers() > 0
            || self.model.all_waiting() > self.model.held_up()
    }

    fn min_workers(&self) -> usize {
        let open = self.scheduler.is_open() && !self.quiescent;
        let kept = self.settings.min_workers.max(self.settings.spare_workers);
        if open { kept.min(self.target) } else { 0 }
    }

    /// Returns the number of further workers that may have tasks now.
    fn room(&self) -> usize {
        let spare = self.settings.spare_workers;
        let limit = if spare == 0 { usize::MAX } else { self.target - spare };
        limit.saturating_sub(self.scheduler.busy_workers())
    }

    fn staying(&self) -> usize {
        self.workers.values().filter(|fake| fake.stays()).count()
    }

    /// Checks everything that holds after each event.
    pub(super) fn check(&mut self, before: &Before) {
        let left = self.scheduler.tasks.left();
        for (worker, _) in &left {
            let fake = self.workers.get(&worker.slot).filter(|fake| fake.id == *worker);
            let leaves = fake.is_some_and(|fake| fake.stop_asked || fake.doomed);
            assert!(leaves || self.unreaped.contains(worker), "{worker} has nothing to give back");
        }
        self.model.set_left(left);
        self.check_tasks();
        if !self.ended {
            self.check_workers(before);
        }
        let now = self.now;
        for fake in self.workers.values_mut() {
            let idle = fake.is_idle();
            fake.idle_since = idle.then(|| fake.idle_since.unwrap_or(now));
            let leaves = idle && fake.stop_asked;
            fake.leaving_since = leaves.then(|| fake.leaving_since.unwrap_or(now));
        }
    }

    fn check_tasks(&self) {
        let waiting = self.model.waiting(None);
        let mut under_way = 0;
        for fake in self.workers.values() {
            let answered = fake.mail.iter().filter_map(answers);
            let frames = fake.frames.iter().filter(|frame| frame.state != FrameState::Revoked);
            let ids = answered.chain(frames.map(|frame| frame.id));
            under_way += ids.map(|id| self.model.ids(id.get()).count()).sum::<usize>();
            if fake.stays() && fake.is_idle() {
                let own = self.model.waiting(Some(fake.id.slot));
                let waiting = waiting.min(self.room());
                assert_eq!(waiting + own, 0, "a task waits although a worker is idle");
            }
        }
        let all_waiting = self.model.unassigned();
        let there = self.model.waiting_items() + under_way;
        assert_eq!(self.model.len(), there, "a task is nowhere or in two places");
        assert_eq!(self.scheduler.backlog(), all_waiting, "the backlog is wrong");
        assert!(all_waiting == 0 || !(self.broke || self.ended), "a task waits forever");
    }

    /// Checks that all wanted workers exist, and that none was started for nothing.
    fn check_workers(&self, before: &Before) {
        for fake in self.workers.values().filter(|fake| fake.stays()) {
            assert!((fake.id.slot as usize) < self.target, "a process stays in a removed slot");
        }
        let slots = 0..u32::try_from(self.target).expect("few");
        let vacant: Vec<u32> = slots.filter(|slot| self.is_vacant(*slot)).collect();
        let pauses = self.scheduler.budget.not_before().is_some_and(|time| time > self.now);
        if !vacant.is_empty() && !pauses {
            let starts = |fake: &&FakeWorker| fake.phase == FakePhase::Starting && fake.stays();
            let starting = self.workers.values().filter(starts).count();
            // A killed worker is replaced once it is dead.
            let there = self.workers.values().filter(|fake| fake.stays() || fake.doomed).count();
            let there = there + self.unreaped.len();
            assert!(there >= self.min_workers(), "fewer workers than the minimum");
            let waiting = self.model.waiting(None).min(self.room());
            assert!(starting >= waiting, "no worker is started for a queued task");
            let idle = self.workers.values().filter(|fake| fake.stays() && fake.is_idle()).count();
            let open = self.scheduler.is_open() && !self.quiescent;
            let spare = if open { self.settings.spare_workers } else { 0 };
            let in_use = if self.settings.exclusive_slots { self.unreaped.len() } else { 0 };
            assert!(starting + idle + in_use >= waiting + spare, "a spare worker is missing");
            let own = vacant.iter().map(|slot| self.model.waiting(Some(*slot)));
            assert_eq!(own.sum::<usize>(), 0, "the only worker of a task is not started");
        }
        let in_vain = self.spawns > before.spawns && !before.may_spawn && !self.has_demand();
        assert!(!in_vain, "a process is started for nothing");
    }

    /// Checks that everything that is due by now was done.
    pub(super) fn check_time(&self) {
        let (now, grace) = (self.now, self.settings.stop_grace);
        for fake in self.workers.values().filter(|fake| !fake.doomed && fake.is_honest()) {
            for frame in &fake.frames {
                // An outcome that the worker has written may not have reached the scheduler yet.
                if let FrameState::Running { since } = frame.state
                    && let Some(limit) = self.model.hard_limit(frame.id.get())
                    && fake.mail.is_empty()
                {
                    assert!(
                        now < since.saturating_add(limit),
                        "{} exceeds its hard deadline",
                        frame.id
                    );
                }
            }
            let worker = fake.id;
            let runs = fake.frames.front().is_some_and(Frame::is_running) && fake.mail.is_empty();
            let late = runs && fake.section.is_some_and(|due| due <= now);
            assert!(!late, "a section of {worker} exceeds its limit");
            if let Some(since) = fake.leaving_since {
                assert!(
                    now < since.saturating_add(2 * grace),
                    "{worker} was asked to stop, and stays"
                );
            }
            if let (Some(since), Some(age), true) =
                (fake.ready_since, self.settings.max_age, fake.stays())
            {
                assert!(now < since.saturating_add(age), "{worker} is too old");
            }
            if let (Some(since), Some(timeout), true) =
                (fake.idle_since, self.settings.idle_timeout, fake.stays())
            {
                let spare = self.staying() > self.min_workers();
                assert!(
                    !spare || now < since.saturating_add(timeout),
                    "{worker} is not needed, and stays"
                );
            }
        }
        // The contents of such a worker's table are unknown until it is dead. Items of a chunk that
        // a worker has started wait for those before them.
        let unknown = self.workers.values().flat_map(|fake| {
            let frames = fake.frames.iter().filter(|frame| !fake.is_honest() || frame.is_running());
            frames.map(|frame| frame.id).chain(fake.mail.iter().filter_map(answers))
        });
        let unknown: Vec<u64> = unknown.flat_map(|id| self.model.ids(id.get())).collect();
        let overdue = self.model.overdue(now);
        let overdue: Vec<_> = overdue.iter().filter(|id| !unknown.contains(id)).collect();
        assert!(overdue.is_empty(), "{overdue:?} exceed their queue deadlines");
        if self.end_by.is_some_and(|by| by <= now) {
            let alive = self.workers.values().any(|fake| !fake.doomed);
            assert!(!alive, "the pool should have ended");
        }
    }

    /// Checks everything that holds after a while without events.
    pub(super) fn check_after(&self, time: Duration) {
        if time < RESCUED_AFTER {
            return;
        }
        let free = |fake: &FakeWorker| fake.stays() && fake.is_idle();
        let all_is_heard = self.workers.values().all(|fake| fake.mail.is_empty());
        let others =
            self.room() > 0 && (self.workers.values().any(free) || self.may_start_another());
        if all_is_heard && others {
            for fake in self.workers.values().filter(|fake| !fake.doomed) {
                let runs = fake.frames.front().is_some_and(Frame::is_running);
                let mut behind =
                    fake.frames.iter().filter(|it| runs && it.state == FrameState::Queued);
                let stuck = behind.find(|frame| self.model.is_movable(frame.id.get()));
                let who = "a worker is idle or could be started";
                assert!(stuck.is_none(), "{stuck:?} waits behind another task, but {who}");
            }
        }
        let at_rest = self.model.len() == 0 && self.workers.values().all(free);
        let rests = at_rest && self.quiescent && self.scheduler.is_open();
        assert!(!rests || self.staying() == 0, "a process stays in a quiesced pool");
        let ages = self.settings.max_age.is_some() && !self.workers.is_empty();
        let leave = self.settings.idle_timeout.is_some() && self.staying() > self.min_workers();
        let wanted = self.scheduler.is_warming() || self.staying() < self.min_workers();
        if at_rest && !ages && !leave && !wanted && self.scheduler.is_open() {
            assert_eq!(self.scheduler.next_deadline(), None, "an idle pool has a deadline");
        }
    }

    /// Returns `true` if a slot has no process and nothing prevents the scheduler from starting
    /// one.
    fn may_start_another(&self) -> bool {
        let ends = self.broke || self.ended || self.scheduler.lifecycle.phase().is_terminating();
        let pauses = self.scheduler.budget.not_before().is_some_and(|time| time > self.now);
        let mut slots = 0..u32::try_from(self.target).expect("few");
        !ends && !pauses && slots.any(|slot| self.is_vacant(slot))
    }

    /// Returns `true` if a process may be started in a slot.
    fn is_vacant(&self, slot: u32) -> bool {
        let keeps_slot = |worker: &WorkerId| self.settings.exclusive_slots && worker.slot == slot;
        !self.workers.contains_key(&slot) && !self.unreaped.iter().any(keeps_slot)
    }

    /// Checks that no worker is retired too early.
    pub(super) fn check_retired(&self, fake: &FakeWorker, why: &str) {
        match why {
            "reached `idle_timeout`" => {
                let timeout = self.settings.idle_timeout.expect("idle workers may leave");
                let since = fake.idle_since.expect("it is idle");
                assert!(since.saturating_add(timeout) <= self.now, "it was busy a moment ago");
            }
            "reached `max_worker_age`" => {
                let age = self.settings.max_age.expect("workers may grow old");
                let since = fake.ready_since.expect("it was ready");
                assert!(since.saturating_add(age * 9 / 10) <= self.now, "it is not old");
            }
            "reached `max_tasks_per_worker`" => {
                let most = self.settings.max_tasks.expect("workers have a maximum number of tasks");
                let waits = fake.frames.iter().filter(|it| it.state == FrameState::Queued).count();
                let done = fake.begun + waits as u64;
                assert!(done >= most - most / 10, "it did {done} of {most} tasks");
            }
            _ => {}
        }
    }

    pub(super) fn outcome(&self, id: u64) -> Option<TaskEnd> {
        let ends = self.outcomes.get(&id)?;
        assert_eq!(ends.len(), 1, "task {id} got more than one outcome");
        ends.first().copied()
    }
}
