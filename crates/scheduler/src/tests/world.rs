//! A simulated world: carries out the scheduler's actions with fake workers and keeps a record.
//!
//! Fake workers take frames in order, and start and finish the front frame when told to. The world
//! knows which tasks have really started, so it can check every outcome. As with real workers, what
//! a worker writes may be read later. Until then it is in the worker's `mail`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZeroU32;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, Revocation, TaskId, WorkerId};

use super::fake_worker::{
    FakePhase, FakeWorker, Frame, FrameState, Progress, answers, failed_items, parts_of,
};
use super::model::{Data, Death, Model};
use crate::{
    Action, Constraints, Event, FailedItems, Failure, KillCause, Outbox, RetryWhy, Returned,
    RevokeWhy, Scheduler, Sending, Settings, Shutdown, StartFailure, Submission, TaskEnd, TaskRef,
    WorkerDeath,
};

#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact that tests read")]
pub(super) struct World {
    pub(super) scheduler: Scheduler<Data>,
    pub(super) now: Monotonic,
    pub(super) workers: BTreeMap<u32, FakeWorker>,
    pub(super) outcomes: BTreeMap<u64, Vec<TaskEnd>>,
    pub(super) places: BTreeMap<u64, TaskRef>,
    pub(super) start_order: Vec<u64>,
    pub(super) ended: bool,
    pub(super) broke: bool,
    pub(super) spawns: usize,
    /// `true` if workers report after each task that they exceed their memory limit.
    pub(super) worn: bool,
    /// The failure of each task that ends, and of some items of chunks.
    pub(super) failure: Option<Failure>,
    /// Names of everything that has occurred at least once.
    pub(super) seen: BTreeSet<String>,
    pub(super) model: Model,
    pub(super) settings: Settings,
    /// Current maximum number of workers.
    pub(super) target: usize,
    /// `true` if no idle worker is kept until there is work.
    pub(super) quiescent: bool,
    /// The time by which the last worker must have been killed, after a shutdown with a timeout.
    pub(super) end_by: Option<Monotonic>,
    /// Workers that may be replaced before they are seen dead.
    pub(super) killed_at_once: BTreeSet<WorkerId>,
    /// Workers that were reported dead before they were gone.
    pub(super) unreaped: Vec<WorkerId>,
    /// The task whose outcome the scheduler is handling.
    reporting: Option<u64>,
    /// The tasks and items that have failed and must run again.
    must_run_again: BTreeSet<u64>,
    pub(super) next_id: u64,
}

pub(super) const MILLI: Duration = Duration::from_millis(1);

pub(super) fn settings(workers: usize) -> Settings {
    Settings {
        workers,
        min_workers: 0,
        spare_workers: 0,
        idle_timeout: None,
        max_tasks: None,
        max_age: None,
        quarantine: 100,
        queue_limit: 1_000_000,
        credit: 8,
        restart_limit: 10,
        restart_window: Duration::from_secs(10),
        stop_grace: Duration::from_secs(1),
        slow_after: None,
        cores: 1,
        copies: false,
        exclusive_slots: false,
        resources: Vec::new(),
        trusts_workers: true,
    }
}

/// Returns a world whose workers are all ready.
pub(super) fn started(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.event(Event::WarmUp);
    for slot in world.slots() {
        world.start(slot);
    }
    world
}

impl World {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            model: Model::new(&settings),
            target: settings.workers + settings.spare_workers,
            settings: settings.clone(),
            scheduler: Scheduler::new(settings, Data::split_off),
            now: Monotonic::ZERO.saturating_add(Duration::from_secs(100)),
            workers: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            places: BTreeMap::new(),
            start_order: Vec::new(),
            ended: false,
            broke: false,
            spawns: 0,
            worn: false,
            failure: None,
            seen: BTreeSet::new(),
            quiescent: false,
            end_by: None,
            killed_at_once: BTreeSet::new(),
            unreaped: Vec::new(),
            reporting: None,
            must_run_again: BTreeSet::new(),
            next_id: 1,
        }
    }

    /// Handles an event and carries out all resulting actions.
    pub(super) fn event(&mut self, event: Event<Data>) {
        let before = self.before(&event);
        self.note(&event);
        let mut outbox = Outbox::default();
        self.scheduler.handle(self.now, event, &mut outbox);
        let mut answers = VecDeque::new();
        loop {
            while let Some(action) = outbox.pop() {
                if let Some(answer) = self.carry_out(&action) {
                    answers.push_back(answer);
                }
            }
            let Some(answer) = answers.pop_front() else { break };
            self.note(&answer);
            self.scheduler.handle(self.now, answer, &mut outbox);
        }
        self.reporting = None;
        assert!(self.must_run_again.is_empty(), "{:?} must run again", self.must_run_again);
        self.scheduler.sanity_check();
        self.check(&before);
    }

    /// Records what the world must know about an event before it is handled.
    fn note(&mut self, event: &Event<Data>) {
        let condemned = |task| self.workers.values().any(|fake| fake.condemned == Some(task));
        if answers(event).is_some_and(condemned) {
            self.seen.insert("a value that came too late".to_owned());
            return;
        }
        match *event {
            Event::RevokeAnswer { task, worker, ring_index, why, found } => {
                let comes_back = matches!(why, RevokeWhy::Steal | RevokeWhy::Clear);
                // The answer does not count if the task has moved elsewhere meanwhile.
                let at = self.scheduler.assignment(task).map(|(at, slot, _)| (at, slot));
                let counts = at == Some((worker, ring_index));
                if comes_back && found == Revocation::Revoked && counts {
                    self.model.returned(task.id.get());
                }
                let gives_up = match found {
                    Revocation::Begun => matches!(why, RevokeWhy::Cancel | RevokeWhy::Kill),
                    Revocation::Neither => why == RevokeWhy::Kill,
                    Revocation::Revoked => false,
                };
                if gives_up && counts {
                    self.model.give_up_items(task.id.get());
                }
            }
            Event::Finished { task, failure, .. } => {
                self.reporting = Some(task.get());
                if let Some(failure) = failure {
                    self.note_failed(task.get(), failure);
                }
            }
            Event::Tick => self.model.resume(self.now),
            Event::Returned(ref returned) => {
                self.seen.insert("returned items".to_owned());
                self.reporting = Some(returned.task.get());
                self.note_failed_items(returned.task.get(), &returned.failed);
            }
            Event::Resize { workers } if self.scheduler.is_open() => {
                self.target = workers + self.settings.spare_workers;
            }
            Event::Quiesce => self.quiescent = true,
            Event::Submit(_) | Event::WarmUp if self.scheduler.is_open() => self.quiescent = false,
            _ => {}
        }
    }

    fn carry_out(&mut self, action: &Action<Data>) -> Option<Event<Data>> {
        match *action {
            Action::Accepted { task } => {
                self.model.accepted(task.id.get());
                self.places.insert(task.id.get(), task);
            }
            Action::Send(Sending { worker, ring_index, id, attempt, .. }) => {
                self.send(worker, ring_index, id, attempt);
            }
            Action::Revoke { worker, ring_index, task, why } => {
                self.see(&why);
                return Some(self.revoke(worker, ring_index, task, why));
            }
            Action::Complete { ref removed, end } => self.complete(&removed.task, end),
            Action::Spawn { worker } => {
                self.spawns += 1;
                let before = self.workers.insert(worker.slot, FakeWorker::new(worker));
                let is_taken = self.unreaped.iter().any(|it| it.slot == worker.slot);
                let is_taken = is_taken && self.settings.exclusive_slots;
                assert!(before.is_none() && !is_taken, "two processes in one slot");
            }
            Action::Stop { worker } => self.fake(worker).stop_asked = true,
            Action::Observe { worker, task, .. } => {
                let now = self.now;
                let seen = self.fake(worker).observe(task.id, now);
                return Some(Event::Observed { task, seen: Box::new(seen) });
            }
            Action::TaskKilled { worker, task, cause } => self.task_killed(worker, task, cause),
            Action::Kill { worker, cause, at_once } => {
                self.see(&cause);
                self.killed_at_once.extend(at_once.then_some(worker));
                let fake = self.fake(worker);
                let mut frames = fake.frames.iter().chain(&fake.answered);
                let has_items =
                    frames.any(|it| it.items.is_some() && it.state != FrameState::Revoked);
                assert!(!at_once || !has_items, "a chunk ends before its last item has ended");
                assert!(fake.cause.is_none(), "a worker is killed twice");
                fake.cause = Some(cause);
                fake.doomed = true;
            }
            Action::Terminate { worker } => {
                // SIGCONT is sent with it.
                let fake = self.fake(worker);
                fake.frozen = false;
                fake.terminated = true;
            }
            Action::Inspect { worker } => {
                if self.fake(worker).frozen {
                    return Some(Event::FoundStopped { worker });
                }
            }
            Action::Retired { worker, why } => {
                self.seen.insert(why.to_owned());
                self.check_retired(&self.workers[&worker.slot], why);
            }
            Action::Retried { task, worker, why, .. } => {
                self.see(&why);
                let at_once = self.killed_at_once.contains(&worker);
                assert!(!at_once, "{} is retried before its last attempt has ended", task.id);
                if self.model.is_item(task.id.get()) {
                    self.seen.insert(format!("{why:?} of an item"));
                }
                for id in self.model.ids(task.id.get()) {
                    let must_run_again = self.must_run_again.remove(&id);
                    assert_eq!(must_run_again, why != RetryWhy::Death, "{id} is retried: {why:?}");
                    if must_run_again {
                        self.model.runs_again(id);
                        self.reporting = self.reporting.filter(|reporting| *reporting != id);
                    }
                }
                self.model.retried(task.id.get(), self.now, self.is_cancelling());
                self.places.insert(task.id.get(), task);
            }
            Action::Requeued { task, .. } => {
                self.model.returned(task.id.get());
                self.places.insert(task.id.get(), task);
            }
            Action::Broke => self.broke = true,
            Action::Ended => self.ended = true,
            Action::Slow { .. } | Action::MoreSlow { .. } => {}
        }
        None
    }

    fn note_failed_items(&mut self, first: u64, failed: &[FailedItems]) {
        for FailedItems { first: index, count, failure } in failed {
            let first = first + u64::from(*index);
            for id in first..first + u64::from(count.get()) {
                self.note_failed(id, *failure);
            }
        }
    }

    fn note_failed(&mut self, id: u64, failure: Failure) {
        let may_run_again = !self.broke && !self.is_cancelling();
        if may_run_again && self.model.must_run_again(id, failure, self.target) {
            self.must_run_again.insert(id);
        }
    }

    fn is_cancelling(&self) -> bool {
        self.scheduler.lifecycle.phase().cancels_pending()
    }

    fn see(&mut self, what: &dyn std::fmt::Debug) {
        self.seen.insert(format!("{what:?}"));
    }

    fn send(&mut self, worker: WorkerId, ring_index: u16, id: TaskId, attempt: Attempt) {
        self.model.sent(id.get(), worker, attempt);
        let fake = self.workers.get_mut(&worker.slot).expect("sent to a worker that exists");
        assert_eq!(
            (fake.id, fake.phase),
            (worker, FakePhase::Ready),
            "sent to a worker that is not ready"
        );
        assert!(fake.stays(), "sent to a worker that is stopping");
        assert!(fake.frames.iter().all(|frame| frame.ring_index != ring_index), "slot used twice");
        let count = u32::try_from(self.model.ids(id.get()).count()).expect("few");
        let items = self.model.is_item(id.get()).then(|| Progress { count, ..Progress::default() });
        fake.frames.push_back(Frame { ring_index, id, attempt, state: FrameState::Queued, items });
    }

    fn complete(&mut self, task: &Data, end: TaskEnd) {
        self.see(&end);
        for id in task.ids() {
            if self.model.is_item(id) {
                self.seen.insert(format!("{end:?} of an item"));
            }
            assert!(!self.must_run_again.contains(&id), "{id} ended as {end:?} but must run again");
            self.outcomes.entry(id).or_default().push(end);
            self.model.ended(id, end, self.now);
        }
        let task = task.first;
        assert_eq!(self.reporting == Some(task), end == TaskEnd::Reported, "task {task}: {end:?}");
        let runs = self.workers.values().flat_map(|fake| &fake.frames);
        let mut runs = runs.filter(|frame| frame.is_running());
        assert!(
            runs.all(|frame| frame.id.get() != task),
            "task {task} ended as {end:?} while it runs"
        );
    }

    /// Checks that the kill harms only the task to be killed, and is not early.
    fn task_killed(&mut self, worker: WorkerId, task: TaskId, cause: KillCause) {
        let limit = self.model.hard_limit(task.get());
        let now = self.now;
        if self.workers[&worker.slot].cause.is_none() && !self.model.is_item(task.get()) {
            self.fake(worker).condemned = Some(task);
        }
        let fake = self.fake(worker);
        if fake.garbled {
            return;
        }
        let section = fake.section;
        for frame in &fake.frames {
            match frame.state {
                FrameState::Revoked => {}
                FrameState::Queued => panic!("a task behind the one to be killed is killed too"),
                FrameState::Running { since } => {
                    assert_eq!(frame.id, task, "an innocent task is killed");
                    if cause == KillCause::Section {
                        assert!(section.is_some_and(|due| due <= now), "killed early");
                    }
                    if cause == KillCause::Deadline {
                        let limit =
                            limit.expect("a task without a hard deadline was killed for it");
                        assert!(now.saturating_since(since) >= limit, "killed early");
                    }
                }
            }
        }
    }

    fn revoke(
        &mut self,
        worker: WorkerId,
        ring_index: u16,
        task: TaskRef,
        why: RevokeWhy,
    ) -> Event<Data> {
        let found = self.fake(worker).revoke(ring_index, task.id);
        Event::RevokeAnswer { task, worker, ring_index, why, found }
    }

    fn fake(&mut self, worker: WorkerId) -> &mut FakeWorker {
        let fake = self.workers.get_mut(&worker.slot).expect("a worker that exists");
        assert_eq!(fake.id, worker, "an action for an old generation");
        fake
    }

    pub(super) fn submit(&mut self, retries: u32) -> u64 {
        self.submit_with(retries, None)
    }

    pub(super) fn submit_with(
        &mut self,
        retries: u32,
        constraints: impl Into<Option<Constraints>>,
    ) -> u64 {
        self.offer(None, retries, constraints.into())
    }

    /// Submits a chunk. If its items share their hard limit, `constraints` has the limit of one.
    pub(super) fn submit_items(
        &mut self,
        count: u32,
        retries: u32,
        constraints: impl Into<Option<Constraints>>,
    ) -> u64 {
        self.offer(Some(count), retries, constraints.into())
    }

    fn offer(&mut self, items: Option<u32>, retries: u32, constraints: Option<Constraints>) -> u64 {
        let id = self.next_id;
        self.next_id += u64::from(items.unwrap_or(1));
        let known = constraints.clone().unwrap_or_default();
        let task = self.model.offer(id, items, self.now, retries, &known);
        let constraints = constraints.map(|mut constraints| {
            constraints.hard_limit = self.model.hard_limit(id);
            Box::new(constraints)
        });
        let items = items.and_then(NonZeroU32::new);
        self.event(Event::Submit(Submission { task, items, retries, constraints }));
        id
    }

    /// Cancels a task, which works until a worker starts it.
    pub(super) fn cancel(&mut self, id: u64) {
        let live = self.model.is_live(id);
        self.event(Event::Cancel(self.places[&id]));
        assert!(!live || self.has_begun_or_ended(id), "task {id} was cancelled but still waits");
    }

    /// Kills a task as the driver does, which first reads all outcomes.
    pub(super) fn kill(&mut self, id: u64) {
        self.hear_all();
        self.event(Event::Kill(self.places[&id]));
        if !self.model.is_item(id) {
            self.model.kill(id);
        }
        if self.model.is_live(id) {
            assert!(self.has_begun_or_ended(id), "task {id} was killed but still waits");
            let doomed = self
                .workers
                .values()
                .any(|fake| fake.doomed && fake.frames.iter().any(|frame| frame.id.get() == id));
            assert!(doomed, "task {id} was killed but still runs");
        }
    }

    /// Returns an accepted task, counted from the newest one. It may have ended.
    pub(super) fn nth_newest_task(&self, nth: usize) -> Option<u64> {
        self.places.keys().rev().nth(nth % self.places.len().max(1)).copied()
    }

    /// Returns one of the workers in this phase.
    pub(super) fn nth_worker(&self, nth: usize, phase: FakePhase) -> Option<WorkerId> {
        let there = || self.workers.values().filter(|fake| fake.phase == phase);
        Some(there().nth(nth % there().count().max(1))?.id)
    }

    /// Stops a worker by a signal, or continues it.
    pub(super) fn freeze(&mut self, slot: u32, frozen: bool) {
        if let Some(fake) = self.workers.get_mut(&slot) {
            fake.frozen = frozen;
        }
    }

    /// Makes the worker overwrite its table of states.
    pub(super) fn garble(&mut self, slot: u32) {
        if let Some(fake) = self.workers.get_mut(&slot) {
            fake.garbled = true;
        }
    }

    fn has_begun_or_ended(&self, id: u64) -> bool {
        let answered = |event: &Event<Data>| answers(event).is_some_and(|task| task.get() == id);
        !self.model.is_live(id)
            || self.workers.values().any(|fake| {
                fake.frames
                    .iter()
                    .any(|it| it.id.get() == id && (it.is_running() || !fake.is_honest()))
                    || fake.mail.iter().any(answered)
            })
    }

    /// Makes the worker of a slot complete its handshake.
    pub(super) fn start(&mut self, slot: u32) {
        self.start_late(slot, false);
    }

    /// Makes the worker complete its handshake. If `late`, it is faster than a kill.
    pub(super) fn start_late(&mut self, slot: u32, late: bool) {
        let Some(fake) =
            self.workers.get_mut(&slot).filter(|fake| fake.phase == FakePhase::Starting)
        else {
            return;
        };
        if fake.doomed && !late {
            return self.fail_start(slot, false);
        }
        fake.phase = FakePhase::Ready;
        fake.ready_since = Some(self.now);
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

    /// Gives up a worker that was forked, and has been sent tasks and not run.
    pub(super) fn give_up_start(&mut self, slot: u32) {
        let Some(fake) = self.workers.remove(&slot) else { return };
        let failure = StartFailure { permanent: true, reason: "made up".into() };
        self.event(Event::StartFailed { worker: fake.id, failure });
    }

    /// Makes the worker start its oldest frame, skipping revoked ones.
    pub(super) fn begin(&mut self, slot: u32) {
        self.begin_unheard(slot);
        self.hear(slot);
    }

    pub(super) fn begin_unheard(&mut self, slot: u32) {
        // A kill revokes no task from an overwritten table. In this world the kill is as fast as
        // the start of the next task.
        let begins = |fake: &&mut FakeWorker| !(fake.frozen || fake.garbled && fake.doomed);
        let Some(fake) = self.workers.get_mut(&slot).filter(begins) else { return };
        while let Some(front) = fake.frames.front_mut() {
            match front.state {
                FrameState::Running { .. } => return,
                FrameState::Queued => {
                    front.state = FrameState::Running { since: self.now };
                    let id = front.id.get();
                    fake.begun += 1;
                    let allowed = self.settings.max_tasks.is_none_or(|most| fake.begun <= most);
                    assert!(allowed, "a worker starts more tasks than allowed");
                    if front.items.is_none() {
                        self.model.began(id, slot);
                    }
                    self.start_order.push(id);
                    return;
                }
                FrameState::Revoked => {
                    let (worker, task, attempt) = (fake.id, front.id, front.attempt);
                    fake.frames.pop_front();
                    fake.mail.push_back(Event::Skipped { worker, task, attempt });
                }
            }
        }
    }

    /// Makes the worker finish the frame that it runs.
    pub(super) fn finish(&mut self, slot: u32, run_time: Duration) {
        self.finish_unheard(slot, run_time);
        self.hear(slot);
    }

    /// Makes the worker start the next item of its chunk, or finish the one that it runs.
    pub(super) fn advance_item(&mut self, slot: u32) {
        let Some(fake) = self.workers.get_mut(&slot).filter(|fake| !fake.frozen) else { return };
        let Some(frame) = fake.frames.front_mut().filter(|frame| frame.is_running()) else {
            return;
        };
        let Some(items) = &mut frame.items else { return };
        if items.begun > items.finished {
            self.model.finished_item(frame.id.get() + u64::from(items.finished));
            items.finished += 1;
            (fake.section, fake.told) = (None, None);
        } else if items.begun < items.count {
            self.model.began_item(frame.id.get() + u64::from(items.begun));
            items.begun += 1;
        }
    }

    /// Returns the progress of the chunk that the worker runs.
    fn progress(&self, slot: u32) -> Option<Progress> {
        let fake = self.workers.get(&slot).filter(|fake| !fake.frozen)?;
        fake.frames.front().filter(|frame| frame.is_running())?.items
    }

    /// Makes the worker finish all items of its chunk.
    pub(super) fn finish_items(&mut self, slot: u32) {
        while self.progress(slot).is_some_and(|items| items.finished < items.count) {
            self.advance_item(slot);
        }
    }

    /// Makes the worker finish its task. From a chunk it returns the items after the one that it
    /// runs.
    pub(super) fn finish_unheard(&mut self, slot: u32, run_time: Duration) {
        let runs = |it: Progress| it.finished == 0 || it.begun > it.finished;
        while self.progress(slot).is_some_and(runs) {
            self.advance_item(slot);
        }
        let Some(fake) = self.workers.get_mut(&slot).filter(|fake| !fake.frozen) else { return };
        if !fake.frames.front().is_some_and(Frame::is_running) {
            return;
        }
        let worker = fake.id;
        let frame = fake.frames.pop_front().expect("looked at above");
        let (task, attempt, worn) = (frame.id, frame.attempt, self.worn);
        let returned = frame.items.and_then(|items| {
            let failed = failed_items(task, items.finished, self.failure);
            let returns = items.finished < items.count || !failed.is_empty();
            returns.then_some((NonZeroU32::new(items.finished)?, failed))
        });
        fake.mail.push_back(if let Some((finished, failed)) = returned {
            let parts = parts_of(task);
            let returned =
                Returned { worker, task, attempt, run_time, worn, finished, parts, failed };
            Event::Returned(Box::new(returned))
        } else {
            let failure = self.failure.filter(|_| frame.items.is_none());
            Event::Finished { worker, task, attempt, run_time, worn, failure }
        });
        fake.answered.push_back(frame);
        (fake.section, fake.told) = (None, None);
    }

    /// Makes the running task open a section in place of its current one. The scheduler is notified
    /// if its next check would be too late.
    pub(super) fn begin_section(&mut self, slot: u32, limit: Duration) {
        let now = self.now;
        let Some(fake) = self.workers.get_mut(&slot).filter(|fake| !fake.frozen) else { return };
        let Some(frame) = fake.frames.front().filter(|frame| frame.is_running()) else { return };
        let (worker, ring_index, due) = (fake.id, frame.ring_index, now.saturating_add(limit));
        fake.section = Some(due);
        if !fake.told.is_some_and(|told| told <= due && told > now) {
            fake.told = Some(due);
            self.event(Event::SectionBegun { worker, ring_index, due });
        }
    }

    pub(super) fn end_section(&mut self, slot: u32) {
        if let Some(fake) = self.workers.get_mut(&slot).filter(|fake| !fake.frozen) {
            fake.section = None;
        }
    }

    /// Makes the worker finish its task and start the next, while nobody reads its messages.
    pub(super) fn run_ahead(&mut self, slot: u32) {
        self.finish_unheard(slot, MILLI);
        self.begin_unheard(slot);
        assert!(self.workers[&slot].frames.front().is_some_and(Frame::is_running));
    }

    /// Ends the worker's process. What it had written is read.
    pub(super) fn crash(&mut self, slot: u32) {
        self.crash_for(slot, None);
    }

    /// Ends the worker's process as the kernel does for this reason.
    pub(super) fn crash_for(&mut self, slot: u32, cause: Option<KillCause>) {
        let Some(fake) = self.workers.get(&slot) else {
            return;
        };
        if fake.phase == FakePhase::Starting {
            return self.fail_start(slot, false);
        }
        self.hear(slot);
        let fake = self.workers.remove(&slot).expect("looked at above");
        // Every task in an overwritten table counts as started.
        let ran = |frame: &&Frame| {
            frame.is_running() || fake.garbled && frame.state == FrameState::Queued
        };
        let running = || fake.frames.iter().filter(ran);
        let death = Death {
            cause: fake.cause.or(cause),
            terminating: self.scheduler.lifecycle.phase().is_terminating(),
            broken: self.broke,
            target: self.target,
        };
        let interrupted: Vec<_> =
            running().filter_map(|frame| frame.interrupted(fake.garbled, self.failure)).collect();
        for frame in running() {
            let finished = frame.items.map_or(0, |items| items.finished);
            let failed = failed_items(frame.id, finished, self.failure);
            self.note_failed_items(frame.id.get(), &failed);
        }
        let mut required_ends = Vec::new();
        for frame in running() {
            let first = frame.id.get();
            let Some(items) = frame.items else {
                if !frame.is_running() {
                    self.model.presume_started(first);
                }
                required_ends.push((first, self.model.required_end(first, death)));
                continue;
            };
            let runs = first + u64::from(items.finished);
            required_ends.extend((first..runs).map(|id| {
                let runs_again = self.must_run_again.contains(&id);
                (id, (!runs_again).then_some(TaskEnd::Finished))
            }));
            if items.begun > items.finished || fake.garbled && items.finished < items.count {
                if items.begun == items.finished {
                    self.model.presume_started(runs);
                }
                required_ends.push((runs, self.model.required_end(runs, death)));
            }
        }
        assert!(interrupted.len() <= 1 || fake.garbled, "a worker runs two tasks");
        let gone = self.is_reaped(&fake);
        let died = Box::new(WorkerDeath { interrupted, cause, gone, end: "SIGSEGV".into() });
        self.event(Event::Died { worker: fake.id, death: died });
        for (id, required_end) in required_ends {
            assert_eq!(
                self.outcome(id),
                required_end,
                "task {id} ran when its worker died: {death:?}"
            );
        }
    }

    pub(super) fn shutdown(&mut self, mode: Shutdown, timeout: Option<Duration>) {
        let grace = self.settings.stop_grace;
        let by = match (mode, timeout) {
            (Shutdown::Kill, _) => Some(self.now),
            (Shutdown::Terminate, timeout) => {
                Some(self.now.saturating_add(timeout.unwrap_or(grace)))
            }
            (_, timeout) => timeout.map(|timeout| self.now.saturating_add(timeout + grace)),
        };
        self.end_by = self.end_by.into_iter().chain(by).min();
        self.event(Event::Shutdown { mode, timeout });
    }

    /// Advances time to the next deadline, if there is one.
    pub(super) fn next_tick(&mut self) -> bool {
        let Some(deadline) = self.scheduler.next_deadline() else { return false };
        self.now = self.now.max(deadline);
        self.event(Event::Tick);
        // Anything that is due again at once comes first.
        if self.scheduler.next_deadline().is_none_or(|due| due > self.now) {
            self.check_time();
        }
        true
    }

    /// Advances time and does everything that is due meanwhile.
    pub(super) fn wait(&mut self, time: Duration) {
        let until = self.now.saturating_add(time);
        let mut in_no_time = 0;
        while self.scheduler.next_deadline().is_some_and(|due| due <= until) {
            let before = self.now;
            self.next_tick();
            in_no_time = if self.now > before { 0 } else { in_no_time + 1 };
            assert!(in_no_time < 100, "a due event stays due");
        }
        self.now = until;
        self.check_time();
        self.check_after(time);
    }

    /// Makes the scheduler learn that tasks take this long, on workers 0 and 1.
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

    /// Runs everything that can run without crashes until nothing changes any more.
    pub(super) fn run_dry(&mut self) {
        for _ in 0..3_000 {
            let before = (self.outcomes.len(), self.spawns, self.workers.len());
            self.reap();
            for slot in self.slots() {
                self.start(slot);
                self.begin(slot);
                self.finish_items(slot);
                self.finish(slot, MILLI);
                self.obey(slot);
            }
            let is_busy =
                |it: &FakeWorker| !it.frames.is_empty() || it.phase == FakePhase::Starting;
            let busy = self.workers.values().any(|fake| !fake.frozen && is_busy(fake));
            if !busy && before == (self.outcomes.len(), self.spawns, self.workers.len()) {
                return;
            }
        }
        panic!("the world does not settle");
    }
}
