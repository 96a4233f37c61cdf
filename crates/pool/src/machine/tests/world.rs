//! A world of made-up workers: carries out what the machine asks for and keeps a ledger.
//!
//! Workers here take frames in order, begin the front one when told to, and answer it when told
//! to. The world knows which tasks really began, so it can check every outcome.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use brigade_wire::{Attempt, TaskId, WorkerId};

use crate::machine::{
    Action, End, Event, KillCause, Machine, Now, Outbox, RevokeWhy, Settings, Shutdown,
    StartFailure, Submission, TaskRef, Terms,
};

pub(super) struct World {
    pub(super) machine: Machine<u64>,
    pub(super) now: Now,
    pub(super) workers: BTreeMap<u32, FakeWorker>,
    pub(super) outcomes: BTreeMap<u64, Vec<End>>,
    pub(super) places: BTreeMap<u64, TaskRef>,
    pub(super) begun_order: Vec<u64>,
    pub(super) ended: bool,
    pub(super) broke: bool,
    pub(super) spawns: usize,
    /// Workers say after each task that they have grown too large.
    pub(super) worn: bool,
    /// Until when workers are in a section of their task.
    pub(super) sections: BTreeMap<u32, Now>,
    /// When tasks with terms were submitted, and the terms.
    pub(super) terms: BTreeMap<u64, (Now, Terms)>,
    next_id: u64,
}

pub(super) struct FakeWorker {
    pub(super) id: WorkerId,
    pub(super) phase: FakePhase,
    pub(super) frames: VecDeque<Frame>,
    pub(super) stop_asked: bool,
    pub(super) doomed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FakePhase {
    Starting,
    Ready,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) link_slot: u16,
    pub(super) id: TaskId,
    pub(super) attempt: Attempt,
    pub(super) state: FrameState,
}

impl Frame {
    fn is_running(&self) -> bool {
        matches!(self.state, FrameState::Running { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    Queued,
    Running { since: Now },
    Revoked,
}

pub(super) fn settings(workers: usize) -> Settings {
    Settings {
        workers,
        min_workers: 0,
        idle_timeout: None,
        max_tasks: None,
        max_age: None,
        quarantine: 100,
        queue_limit: 1_000_000,
        credit: 8,
        restart_limit: 10,
        restart_window: Duration::from_secs(10),
        stop_grace: Duration::from_secs(1),
    }
}

impl World {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            machine: Machine::new(settings),
            now: Duration::from_secs(100),
            workers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            places: BTreeMap::new(),
            begun_order: Vec::new(),
            ended: false,
            broke: false,
            spawns: 0,
            worn: false,
            sections: BTreeMap::new(),
            terms: BTreeMap::new(),
            next_id: 1,
        }
    }

    /// Hands an event in and carries out all that follows from it.
    pub(super) fn event(&mut self, event: Event<u64>) {
        let mut outbox = Outbox::default();
        self.machine.handle(self.now, event, &mut outbox);
        let mut answers = VecDeque::new();
        loop {
            let actions: Vec<_> = std::iter::from_fn(|| outbox.pop()).collect();
            for action in actions {
                if let Some(answer) = self.carry_out(&action) {
                    answers.push_back(answer);
                }
            }
            let Some(answer) = answers.pop_front() else {
                break;
            };
            self.machine.handle(self.now, answer, &mut outbox);
        }
        self.machine.sanity_check();
    }

    fn carry_out(&mut self, action: &Action<u64>) -> Option<Event<u64>> {
        match *action {
            Action::Accepted { task } => {
                self.places.insert(task.id.get(), task);
            }
            Action::Send { worker, link_slot, id, attempt, .. } => {
                let fake =
                    self.workers.get_mut(&worker.slot).expect("sent to a worker that exists");
                assert_eq!(
                    (fake.id, fake.phase),
                    (worker, FakePhase::Ready),
                    "sent to a worker that is not ready"
                );
                assert!(
                    fake.frames.iter().all(|frame| frame.link_slot != link_slot),
                    "slot used twice"
                );
                let state = FrameState::Queued;
                fake.frames.push_back(Frame { link_slot, id, attempt, state });
            }
            Action::Revoke { worker, link_slot, task, why } => {
                return Some(self.revoke(worker, link_slot, task, why));
            }
            Action::Complete { task, end, .. } => {
                self.outcomes.entry(task).or_default().push(end);
                self.check_limits(task, end);
            }
            Action::Spawn { worker } => {
                self.spawns += 1;
                let fake = FakeWorker {
                    id: worker,
                    phase: FakePhase::Starting,
                    frames: VecDeque::new(),
                    stop_asked: false,
                    doomed: false,
                };
                let before = self.workers.insert(worker.slot, fake);
                assert!(before.is_none(), "two processes in one slot");
            }
            Action::Stop { worker } => self.fake(worker).stop_asked = true,
            Action::Observe { worker, link_slot, task } => {
                let frames = &self.fake(worker).frames;
                let frame = frames.iter().find(|frame| frame.link_slot == link_slot);
                let began = match frame.map(|frame| frame.state) {
                    Some(FrameState::Running { since }) => Some(since),
                    _ => None,
                };
                let section = self.sections.get(&worker.slot).copied();
                return Some(Event::Observed { task, began, section });
            }
            Action::Condemned { worker, task, .. } => {
                let running = self.fake(worker).frames.iter().find(|frame| frame.is_running());
                let running = running.map(|frame| frame.id);
                assert!(running.is_none_or(|id| id == task), "an innocent task is killed");
            }
            Action::Kill { worker, .. } => self.fake(worker).doomed = true,
            Action::Retired { .. }
            | Action::Terminate { .. }
            | Action::Inspect { .. }
            | Action::Retried { .. }
            | Action::Requeued { .. }
            | Action::Rearm => {}
            Action::Broke => self.broke = true,
            Action::Ended => self.ended = true,
        }
        None
    }

    /// No task is ended before its time.
    fn check_limits(&self, task: u64, end: End) {
        let Some((submitted, terms)) = self.terms.get(&task) else { return };
        let after = self.now.saturating_sub(*submitted);
        let limit = match end {
            End::Expired => terms.queue_limit.expect("a task that may wait for ever has expired"),
            End::Killed(KillCause::Deadline) => {
                terms.run_limit.expect("a task that may run for ever was killed for it")
            }
            _ => return,
        };
        assert!(after >= limit, "task {task} ended as {end:?} after {after:?}, it has {limit:?}");
    }

    fn revoke(
        &mut self,
        worker: WorkerId,
        link_slot: u16,
        task: TaskRef,
        why: RevokeWhy,
    ) -> Event<u64> {
        let frames = &mut self.fake(worker).frames;
        let frame =
            frames.iter_mut().find(|frame| frame.link_slot == link_slot && frame.id == task.id);
        let revoked = match frame {
            Some(frame) if frame.state == FrameState::Queued => {
                frame.state = FrameState::Revoked;
                true
            }
            _ => false,
        };
        Event::RevokeAnswer { task, worker, why, revoked }
    }

    fn fake(&mut self, worker: WorkerId) -> &mut FakeWorker {
        let fake = self.workers.get_mut(&worker.slot).expect("a worker that exists");
        assert_eq!(fake.id, worker, "an action for an old generation");
        fake
    }

    pub(super) fn submit(&mut self, retries: u32) -> u64 {
        self.submit_with(retries, None)
    }

    pub(super) fn submit_with(&mut self, retries: u32, terms: impl Into<Option<Terms>>) -> u64 {
        let terms = terms.into();
        let id = self.next_id;
        if let Some(terms) = &terms {
            self.terms.insert(id, (self.now, terms.clone()));
        }
        self.next_id += 1;
        self.event(Event::Submit(Submission {
            id: TaskId::new(id),
            task: id,
            attempt: Attempt::first(),
            retries,
            terms: terms.map(Box::new),
        }));
        id
    }

    pub(super) fn cancel(&mut self, id: u64) {
        self.event(Event::Cancel(self.places[&id]));
    }

    /// The worker of a slot finishes its handshake.
    pub(super) fn start(&mut self, slot: u32) {
        let Some(fake) =
            self.workers.get_mut(&slot).filter(|fake| fake.phase == FakePhase::Starting)
        else {
            return;
        };
        if fake.doomed {
            return self.fail_start(slot, false);
        }
        fake.phase = FakePhase::Ready;
        let worker = fake.id;
        self.event(Event::Ready { worker });
    }

    pub(super) fn fail_start(&mut self, slot: u32, permanent: bool) {
        let Some(fake) = self.workers.get(&slot).filter(|fake| fake.phase == FakePhase::Starting)
        else {
            return;
        };
        let worker = fake.id;
        self.workers.remove(&slot);
        let failure = StartFailure { permanent, reason: "made up".into() };
        self.event(Event::StartFailed { worker, failure });
    }

    /// The worker begins its oldest frame, passing over revoked ones.
    pub(super) fn begin(&mut self, slot: u32) {
        loop {
            let Some(fake) = self.workers.get_mut(&slot) else {
                return;
            };
            let worker = fake.id;
            let Some(front) = fake.frames.front_mut() else {
                return;
            };
            match front.state {
                FrameState::Running { .. } => return,
                FrameState::Queued => {
                    front.state = FrameState::Running { since: self.now };
                    let id = front.id.get();
                    let wanted = self.terms.get(&id).and_then(|(_, terms)| terms.slot);
                    assert!(wanted.is_none_or(|wanted| wanted == slot), "run by another worker");
                    self.begun_order.push(id);
                    return;
                }
                FrameState::Revoked => {
                    let (task, attempt) = (front.id, front.attempt);
                    fake.frames.pop_front();
                    self.event(Event::Skipped { worker, task, attempt });
                    self.event(Event::Balance);
                }
            }
        }
    }

    /// The worker answers the frame that it runs.
    pub(super) fn finish(&mut self, slot: u32, run_time: Duration) {
        let Some(fake) = self.workers.get_mut(&slot) else {
            return;
        };
        if !fake.frames.front().is_some_and(Frame::is_running) {
            return;
        }
        let worker = fake.id;
        let frame = fake.frames.pop_front().expect("looked at above");
        let (task, attempt, worn) = (frame.id, frame.attempt, self.worn);
        self.event(Event::Finished { worker, task, attempt, run_time, worn });
        self.event(Event::Balance);
    }

    /// The worker finishes what it runs and begins what comes next; gives the answer, which the machine has not heard of.
    pub(super) fn run_ahead(&mut self, slot: u32) -> Event<u64> {
        let now = self.now;
        let fake = self.workers.get_mut(&slot).expect("a worker that exists");
        let frame = fake.frames.pop_front().expect("it runs something");
        let next = fake.frames.front_mut().expect("something is prefetched");
        next.state = FrameState::Running { since: now };
        let (worker, run_time) = (fake.id, Duration::from_millis(1));
        self.begun_order.push(next.id.get());
        Event::Finished { worker, task: frame.id, attempt: frame.attempt, run_time, worn: false }
    }

    /// The task that the worker runs has begun a section.
    pub(super) fn section_begun(&mut self, slot: u32) {
        let fake = &self.workers[&slot];
        let frame = fake.frames.front().expect("it runs something");
        let (worker, link_slot) = (fake.id, frame.link_slot);
        let due = self.sections[&slot];
        self.event(Event::SectionBegun { worker, link_slot, due });
    }

    /// The worker's process dies at this moment.
    pub(super) fn crash(&mut self, slot: u32) {
        let Some(fake) = self.workers.get(&slot) else {
            return;
        };
        if fake.phase == FakePhase::Starting {
            return self.fail_start(slot, false);
        }
        let fake = self.workers.remove(&slot).expect("looked at above");
        let running = fake.frames.iter().filter(|frame| frame.is_running());
        let ran = running.map(|frame| frame.link_slot).collect();
        self.event(Event::Died { worker: fake.id, ran });
    }

    /// A worker that was killed, or that was asked to stop and has nothing to do, goes.
    pub(super) fn obey(&mut self, slot: u32) {
        let Some(fake) = self.workers.get(&slot) else {
            return;
        };
        if fake.doomed {
            return self.crash(slot);
        }
        if fake.stop_asked {
            self.begin(slot);
            if self.workers.get(&slot).is_some_and(|fake| fake.frames.is_empty()) {
                self.crash(slot);
            }
        }
    }

    pub(super) fn shutdown(&mut self, mode: Shutdown, timeout: Option<Duration>) {
        self.event(Event::Shutdown { mode, timeout });
    }

    /// Lets time go on to the next deadline, if there is one.
    pub(super) fn next_tick(&mut self) -> bool {
        let Some(deadline) = self.machine.next_deadline() else {
            return false;
        };
        self.now = self.now.max(deadline);
        self.event(Event::Tick);
        true
    }

    /// Lets so much time go by, with all that is due meanwhile.
    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..1_000 {
            if self.machine.next_deadline().is_none_or(|due| due > until) {
                self.now = until;
                return;
            }
            self.next_tick();
        }
        panic!("what is due stays due");
    }

    /// Lets the machine learn that tasks take so long, in workers 0 and 1.
    pub(super) fn get_used_to(&mut self, run_time: Duration) {
        for _ in 0..300 {
            self.submit(0);
            for slot in [0, 1] {
                self.begin(slot);
                self.finish(slot, run_time);
            }
        }
        while self.next_tick() {}
    }

    pub(super) fn slots(&self) -> Vec<u32> {
        self.workers.keys().copied().collect()
    }

    /// Runs everything that can run without crashes until nothing moves any more.
    pub(super) fn run_dry(&mut self) {
        for _ in 0..3_000 {
            let before = (self.outcomes.len(), self.spawns, self.workers.len());
            for slot in self.slots() {
                self.start(slot);
                self.begin(slot);
                self.finish(slot, Duration::from_millis(1));
                self.obey(slot);
            }
            let busy = self
                .workers
                .values()
                .any(|fake| !fake.frames.is_empty() || fake.phase == FakePhase::Starting);
            if !busy && before == (self.outcomes.len(), self.spawns, self.workers.len()) {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    pub(super) fn outcome(&self, id: u64) -> Option<End> {
        self.outcomes.get(&id).map(|ends| {
            assert_eq!(ends.len(), 1, "task {id} got more than one outcome");
            ends[0]
        })
    }
}
