//! What must hold in the world after each event, and once time has gone by.

use std::time::Duration;

use super::world::{FakePhase, FakeWorker, Frame, FrameState, World};
use crate::machine::{Event, KillCause, WorkerState};

/// How things stood before an event, as far as that decides what may follow.
pub(super) struct Before {
    spawns: usize,
    /// Processes may be started for more than the tasks that wait now.
    may_spawn: bool,
}

/// Packed tasks are looked for every millisecond. Their worker may have made progress the first time, and they may have
/// been packed behind another long task the second time.
const RESCUED_AFTER: Duration = Duration::from_millis(4);

impl World {
    pub(super) fn before(&self, event: &Event<u64>) -> Before {
        let replaced = match *event {
            Event::Died { worker, .. } => self.machine.live(worker).is_some_and(|entry| {
                let asked = matches!(entry.state, WorkerState::Stopping { .. });
                !asked && entry.kill_cause != Some(KillCause::Unwanted)
            }),
            _ => false,
        };
        Before { spawns: self.spawns, may_spawn: replaced || self.has_demand() }
    }

    fn has_demand(&self) -> bool {
        self.machine.warming || self.fewest() > 0 || self.model.all_waiting() > 0
    }

    fn fewest(&self) -> usize {
        let open = self.machine.is_open() && !self.quiescent;
        if open { self.settings.min_workers.min(self.target) } else { 0 }
    }

    fn staying(&self) -> usize {
        self.workers.values().filter(|fake| fake.stays()).count()
    }

    /// After each event.
    pub(super) fn check(&mut self, before: &Before) {
        self.check_tasks();
        if !self.ended {
            self.check_crew(before);
        }
        let now = self.now;
        for fake in self.workers.values_mut() {
            let idle = fake.has_nothing_to_do();
            fake.idle_since = idle.then(|| fake.idle_since.unwrap_or(now));
            let leaves = idle && fake.stop_asked;
            fake.leaving_since = leaves.then(|| fake.leaving_since.unwrap_or(now));
        }
    }

    fn check_tasks(&self) {
        let waiting = self.model.waiting(None);
        let mut under_way = 0;
        for fake in self.workers.values() {
            let answers = fake.mail.iter().filter(|it| matches!(it, Event::Finished { .. }));
            let frames = fake.frames.iter().filter(|frame| frame.state != FrameState::Revoked);
            under_way += answers.count() + frames.count();
            if fake.stays() && fake.has_nothing_to_do() {
                let own = self.model.waiting(Some(fake.id.slot));
                assert_eq!(waiting + own, 0, "a task waits although a worker is free");
            }
        }
        let all_waiting = self.model.all_waiting();
        assert_eq!(self.model.len(), all_waiting + under_way, "a task is nowhere, or twice");
        assert_eq!(self.machine.backlog(), all_waiting, "the backlog is wrong");
        assert!(all_waiting == 0 || !(self.broke || self.ended), "a task waits for ever");
    }

    /// As many processes as are wanted, and none in vain.
    fn check_crew(&self, before: &Before) {
        for fake in self.workers.values().filter(|fake| fake.stays()) {
            assert!(
                (fake.id.slot as usize) < self.target,
                "a process stays in a slot that is gone"
            );
        }
        let slots = 0..u32::try_from(self.target).expect("few");
        let vacant: Vec<u32> = slots.filter(|slot| !self.workers.contains_key(slot)).collect();
        let pauses = self.machine.budget.not_before().is_some_and(|time| time > self.now);
        if !vacant.is_empty() && !pauses {
            let starts = |fake: &&FakeWorker| fake.phase == FakePhase::Starting && fake.stays();
            let starting = self.workers.values().filter(starts).count();
            // One that was killed is replaced when it is dead.
            let there = self.workers.values().filter(|fake| fake.stays() || fake.doomed).count();
            assert!(there >= self.fewest(), "fewer workers than are to be kept");
            assert!(starting >= self.model.waiting(None), "nobody starts a worker for a task");
            let own = vacant.iter().map(|slot| self.model.waiting(Some(*slot)));
            assert_eq!(own.sum::<usize>(), 0, "nobody starts the one worker of a task");
        }
        let in_vain = self.spawns > before.spawns && !before.may_spawn && !self.has_demand();
        assert!(!in_vain, "a process is started for nothing");
    }

    /// Whatever is due by now has been done.
    pub(super) fn check_time(&self) {
        let (now, grace) = (self.now, self.settings.stop_grace);
        for fake in self.workers.values().filter(|fake| !fake.doomed && fake.is_honest()) {
            for frame in &fake.frames {
                // What a worker has answered is known to it, and not yet to the machine.
                if let FrameState::Running { since } = frame.state
                    && let Some(limit) = self.model.run_limit(frame.id.get())
                    && fake.mail.is_empty()
                {
                    assert!(now < since + limit, "{} runs longer than it may", frame.id);
                }
            }
            let worker = fake.id;
            let runs = fake.frames.front().is_some_and(Frame::is_running) && fake.mail.is_empty();
            let late = runs && fake.section.is_some_and(|due| due <= now);
            assert!(!late, "a section of {worker} lasts longer than it may");
            if let Some(since) = fake.leaving_since {
                assert!(now < since + 2 * grace, "{worker} was asked to leave, and stays");
            }
            if let (Some(since), Some(age), true) =
                (fake.ready_since, self.settings.max_age, fake.stays())
            {
                assert!(now < since + age, "{worker} is too old");
            }
            if let (Some(since), Some(timeout), true) =
                (fake.idle_since, self.settings.idle_timeout, fake.stays())
            {
                let spare = self.staying() > self.fewest();
                assert!(!spare || now < since + timeout, "{worker} is not needed, and stays");
            }
        }
        // What the table of such a worker holds is not known before it is dead.
        let unknown = self.workers.values().filter(|fake| !fake.is_honest());
        let unknown: Vec<u64> =
            unknown.flat_map(|fake| fake.frames.iter().map(|frame| frame.id.get())).collect();
        let overdue = self.model.overdue(now);
        let overdue: Vec<_> = overdue.iter().filter(|id| !unknown.contains(id)).collect();
        assert!(overdue.is_empty(), "{overdue:?} have waited longer than they may");
        if self.end_by.is_some_and(|by| by <= now) {
            let alive = self.workers.values().any(|fake| !fake.doomed);
            assert!(!alive, "the pool was to have ended");
        }
    }

    /// What holds once nothing but time has happened for a while.
    pub(super) fn check_rest(&self, time: Duration) {
        if time < RESCUED_AFTER {
            return;
        }
        let free = |fake: &FakeWorker| fake.stays() && fake.has_nothing_to_do();
        let all_is_heard = self.workers.values().all(|fake| fake.mail.is_empty());
        if all_is_heard && (self.workers.values().any(free) || self.may_start_another()) {
            for fake in self.workers.values().filter(|fake| !fake.doomed) {
                let runs = fake.frames.front().is_some_and(Frame::is_running);
                let mut behind =
                    fake.frames.iter().filter(|it| runs && it.state == FrameState::Queued);
                let stuck = behind.find(|frame| self.model.is_movable(frame.id.get()));
                let who = "a worker is free, or could be started";
                assert!(stuck.is_none(), "{stuck:?} waits behind another, and {who}");
            }
        }
        let at_rest = self.model.len() == 0 && self.workers.values().all(free);
        let rests = at_rest && self.quiescent && self.machine.is_open();
        assert!(!rests || self.staying() == 0, "a process stays in a pool that rests");
        let ages = self.settings.max_age.is_some() && !self.workers.is_empty();
        let leave = self.settings.idle_timeout.is_some() && self.staying() > self.fewest();
        let wanted = self.machine.warming || self.staying() < self.fewest();
        if at_rest && !ages && !leave && !wanted && self.machine.is_open() {
            assert_eq!(self.machine.next_deadline(), None, "an idle pool waits for something");
        }
    }

    /// Whether a slot has no process and nothing keeps the machine from starting one.
    fn may_start_another(&self) -> bool {
        let ends = self.broke || self.ended || self.machine.phase.is_terminating();
        let pauses = self.machine.budget.not_before().is_some_and(|time| time > self.now);
        let mut slots = 0..u32::try_from(self.target).expect("few");
        !ends && !pauses && slots.any(|slot| !self.workers.contains_key(&slot))
    }

    /// Nobody leaves too early.
    pub(super) fn check_retired(&self, fake: &FakeWorker, why: &str) {
        match why {
            "it had nothing to do" => {
                let timeout = self.settings.idle_timeout.expect("idle workers may leave");
                let since = fake.idle_since.expect("it has nothing to do");
                assert!(since + timeout <= self.now, "it has just had something to do");
            }
            "it has reached its age" => {
                let age = self.settings.max_age.expect("workers may grow old");
                let since = fake.ready_since.expect("it was ready");
                assert!(since + age * 9 / 10 <= self.now, "it is not old");
            }
            "it has done its number of tasks" => {
                let most = self.settings.max_tasks.expect("workers do a number of tasks");
                let waits = fake.frames.iter().filter(|it| it.state == FrameState::Queued).count();
                let done = fake.begun + waits as u64;
                assert!(done >= most - most / 10, "it has done {done} of {most} tasks");
            }
            _ => {}
        }
    }
}
