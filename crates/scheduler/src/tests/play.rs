//! Scripts: sequences of arbitrary events.

use std::time::Duration;

use brigade_base::{Need, Needs, TaskId, WorkerId};
use proptest::prelude::*;

use super::fake_worker::FakePhase;
use super::world::{World, settings};
use crate::{Constraints, Event, Failure, KillCause, Resource, Retry, Settings, Shutdown, TaskEnd};

/// One step of a script.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Submit { retries: u32 },
    SubmitWith { retries: u32, constraints: Constraints },
    Cancel { nth: usize },
    Kill { nth: usize },
    WarmUp,
    Resize { workers: usize },
    Quiesce,
    Worn { worn: bool },
    Fail { failure: Option<Failure> },
    Wait { millis: u64 },
    Tick,
    Start { nth: usize, late: bool },
    FailStart { nth: usize, permanent: bool },
    Begin { nth: usize, heard: bool },
    Finish { nth: usize, time: u32, heard: bool },
    SubmitItems { count: u32, retries: u32, constraints: Option<Constraints> },
    AdvanceItem { nth: usize },
    FinishItems { nth: usize },
    Hear { nth: usize },
    HearAll,
    BeginSection { nth: usize, millis: u64 },
    EndSection { nth: usize },
    Freeze { nth: usize },
    Thaw { nth: usize },
    Misbehave { nth: usize },
    Garble { nth: usize },
    AnswerAnother { nth: usize },
    Crash { nth: usize, denied: bool },
    Obey { nth: usize },
    Shutdown { mode: Shutdown, timeout: Option<u64> },
    Break,
}

/// The steps to play and the settings of the pool.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) settings: Settings,
    /// Run time that the scheduler expects before the first task has run.
    pub(super) usual_micros: u64,
    /// Longest run time of a task.
    pub(super) longest_micros: u32,
    pub(super) steps: Vec<Step>,
    /// The mode of the shutdown after the last step.
    pub(super) last: Shutdown,
}

prop_compose! {
    fn any_settings()(
        credit in 1..6_u16,
        workers in 1..4_usize,
        min_workers in 0..3_usize,
        spare_workers in prop_oneof![2 => Just(0_usize), 1 => 1..3_usize],
        idle_timeout in proptest::option::of(0..50_u64),
        max_tasks in proptest::option::of(1..30_u64),
        max_age in proptest::option::of(1..100_u64),
        quarantine in 1..4_u32,
        restart_limit in prop_oneof![1 => 0..4_u32, 9 => Just(1_000)],
        copies: bool,
    ) -> Settings {
        Settings {
            credit,
            min_workers: min_workers.min(workers),
            spare_workers,
            idle_timeout: idle_timeout.map(Duration::from_millis),
            max_tasks,
            max_age: max_age.map(Duration::from_millis),
            quarantine,
            restart_limit,
            copies,
            // Without a number of its own, so that the scripts of known seeds stay as they are.
            exclusive_slots: credit % 2 == 0,
            resources: vec![Resource::Indexed(2), Resource::Sum(5)],
            ..settings(workers)
        }
    }
}

/// Steps with their approximate frequencies per thousand.
const WORK: [(u32, Kind); 29] = [
    (90, |it| Step::Submit { retries: it.below(3) }),
    (60, |it| Step::SubmitWith { retries: it.below(3), constraints: it.constraints() }),
    (50, |it| Step::SubmitItems {
        count: 1 + it.below(6),
        retries: it.below(3),
        constraints: it.one_in(2).then(|| it.constraints_of_items()),
    }),
    (200, |it| Step::AdvanceItem { nth: it.worker() }),
    (30, |it| Step::FinishItems { nth: it.worker() }),
    (20, |it| Step::Cancel { nth: it.below(24) as usize }),
    (20, |it| Step::Kill { nth: it.below(24) as usize }),
    (8, |_| Step::WarmUp),
    (6, |it| Step::Resize { workers: 1 + it.below(4) as usize }),
    (4, |_| Step::Quiesce),
    (4, |it| Step::Worn { worn: it.one_in(4) }),
    (12, |it| Step::Fail {
        failure: [None, None, Some(Failure::Panic), Some(Failure::Error)][it.below(4) as usize],
    }),
    (40, |it| Step::Wait { millis: it.below(40).into() }),
    (20, |_| Step::Tick),
    (80, |it| Step::Start { nth: it.worker(), late: it.one_in(2) }),
    (8, |it| Step::FailStart { nth: it.worker(), permanent: it.one_in(30) }),
    (200, |it| Step::Begin { nth: it.worker(), heard: !it.one_in(5) }),
    (200, |it| Step::Finish { nth: it.worker(), heard: !it.one_in(5), time: it.rest() }),
    (30, |it| Step::Hear { nth: it.worker() }),
    (20, |_| Step::HearAll),
    (20, |it| Step::BeginSection { nth: it.worker(), millis: 1 + u64::from(it.below(50)) }),
    (20, |it| Step::EndSection { nth: it.worker() }),
    (10, |it| Step::Freeze { nth: it.worker() }),
    (14, |it| Step::Thaw { nth: it.worker() }),
    (4, |it| Step::Misbehave { nth: it.worker() }),
    (4, |it| Step::Garble { nth: it.worker() }),
    (4, |it| Step::AnswerAnother { nth: it.worker() }),
    (20, |it| Step::Crash { nth: it.worker(), denied: it.one_in(5) }),
    (40, |it| Step::Obey { nth: it.worker() }),
];

/// Additional steps near the end of a script.
const ENDING: [(u32, Kind); 3] = [
    (1, |_| Step::Break),
    (10, |it| Step::Wait { millis: it.below(2_000).into() }),
    (10, |it| {
        let timeout = it.option(2_000);
        let modes = [Shutdown::Drain, Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill];
        Step::Shutdown { mode: modes[it.below(4) as usize], timeout }
    }),
];

type Kind = fn(&mut Digits) -> Step;

/// A number whose digits determine a step. Drawing and shrinking one number per step takes a
/// fraction of the time that a strategy for each kind of step takes.
struct Digits(u64);

impl Digits {
    fn below(&mut self, limit: u32) -> u32 {
        let digit = self.0 % u64::from(limit);
        self.0 /= u64::from(limit);
        u32::try_from(digit).expect("below a u32")
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.below(many) == 1
    }

    fn worker(&mut self) -> usize {
        self.below(4) as usize
    }

    fn rest(&mut self) -> u32 {
        self.below(u32::MAX)
    }

    /// Returns `None`, or a number from 1 on.
    fn option(&mut self, limit: u32) -> Option<u64> {
        self.one_in(2).then(|| 1 + u64::from(self.below(limit)))
    }

    fn constraints_of_items(&mut self) -> Constraints {
        let items_share_limit = self.one_in(2);
        Constraints { slot: None, items_share_limit, ..self.constraints() }
    }

    fn constraints(&mut self) -> Constraints {
        let priority: i32 = [0, 1, 2, -1, -2][self.below(5) as usize];
        Constraints {
            priority,
            slot: self.one_in(5).then(|| self.below(5)),
            queue_limit: self.option(50).map(Duration::from_millis),
            hard_limit: self.option(50).map(Duration::from_millis),
            cpu_limit: self.option(50).map(Duration::from_millis),
            alone: self.one_in(5),
            // Without a digit of its own, so that the scripts of known seeds stay as they are.
            earlier_attempts: priority.unsigned_abs(),
            retry: self.retry(),
            retries_panics: self.one_in(2),
            retries_errors: self.one_in(2),
            needs: self.one_in(3).then(|| self.needs()),
            ..Constraints::default()
        }
    }
}

impl Digits {
    /// Returns at most what the pool has.
    fn needs(&mut self) -> Needs {
        let amounts = [(0, self.below(3)), (1, self.below(6))];
        let need = |(resource, amount): (u16, u32)| Need { resource, amount: amount.into() };
        Needs::from(amounts.map(need).to_vec())
    }

    fn retry(&mut self) -> Retry {
        let retry = Retry::new().jitter(if self.one_in(2) { 0.5 } else { 0.0 });
        self.option(50).map_or(retry, |millis| retry.delay(Duration::from_millis(millis)))
    }
}

fn steps(kinds: &'static [(u32, Kind)], most: usize) -> impl Strategy<Value = Vec<Step>> {
    let all: u32 = kinds.iter().map(|(weight, _)| weight).sum();
    let step = (0..all, any::<u64>()).prop_map(move |(mut choice, digits)| {
        let kind = kinds.iter().find_map(|(weight, kind)| {
            let found = choice < *weight;
            choice = choice.wrapping_sub(*weight);
            found.then_some(kind)
        });
        kind.expect("below the sum of all weights")(&mut Digits(digits))
    });
    proptest::collection::vec(step, 0..most)
}

/// Returns the steps of `work`, interleaved with those of `ending`.
fn interleaved(work: Vec<Step>, ending: Vec<Step>) -> Vec<Step> {
    let every = work.len() / ending.len().max(1) + 1;
    let mut ending = ending.into_iter();
    let mut all = Vec::new();
    for chunk in work.chunks(every) {
        all.extend(ending.next());
        all.extend_from_slice(chunk);
    }
    all.extend(ending);
    all
}

prop_compose! {
    /// Any script: mostly work, then an end that may include several shutdown requests.
    pub(super) fn scripts()(
        settings in any_settings(),
        usual_micros in prop_oneof![Just(1), Just(10), Just(1_000), Just(1_000_000)],
        longest_micros in prop_oneof![Just(2), Just(50), Just(2_000)],
        work in steps(&WORK, 300),
        ending in (steps(&WORK, 30), steps(&ENDING, 6)),
        last in prop_oneof![Just(Shutdown::Drain), Just(Shutdown::Kill)],
    ) -> Script {
        let steps = work.into_iter().chain(interleaved(ending.0, ending.1)).collect();
        Script { settings, usual_micros, longest_micros, steps, last }
    }
}

impl Script {
    /// Plays the steps until the pool has ended, and returns their number.
    pub(super) fn play(&self, world: &mut World) -> u64 {
        world.scheduler.run_times.set_usual(Duration::from_micros(self.usual_micros));
        // The driver begins this way if there is a minimum of workers.
        world.event(Event::Tick);
        let mut played = 0;
        for step in &self.steps {
            if world.ended {
                break;
            }
            played += 1;
            self.play_step(world, step);
        }
        self.end(world);
        played
    }

    fn play_step(&self, world: &mut World, step: &Step) {
        match *step {
            Step::Submit { retries } => {
                world.submit(retries);
            }
            Step::SubmitWith { retries, ref constraints } => {
                world.submit_with(retries, constraints.clone());
            }
            Step::SubmitItems { count, retries, ref constraints } => {
                world.submit_items(count, retries, constraints.clone());
            }
            Step::Cancel { nth } => {
                if let Some(id) = world.nth_newest_task(nth) {
                    world.cancel(id);
                }
            }
            Step::Kill { nth } => {
                if let Some(id) = world.nth_newest_task(nth) {
                    world.kill(id);
                }
            }
            Step::Resize { workers } => world.event(Event::Resize { workers }),
            Step::Quiesce => world.event(Event::Quiesce),
            Step::Worn { worn } => world.worn = worn,
            Step::Fail { failure } => world.failure = failure,
            Step::Wait { millis } => {
                world.wait(Duration::from_millis(millis));
                if millis % 2 == 0 {
                    world.reap();
                }
            }
            Step::HearAll => {
                world.hear_all();
                world.reap();
            }
            Step::Break => world.event(Event::Break { reason: "made up".into() }),
            Step::WarmUp => world.event(Event::WarmUp),
            Step::Tick => {
                world.next_tick();
            }
            Step::Shutdown { mode, timeout } => {
                world.shutdown(mode, timeout.map(Duration::from_millis));
            }
            Step::Start { nth, .. } | Step::FailStart { nth, .. } => {
                if let Some(worker) = world.nth_worker(nth, FakePhase::Starting) {
                    Self::play_start(world, worker.slot, step);
                }
            }
            Step::Begin { nth, .. }
            | Step::Finish { nth, .. }
            | Step::AdvanceItem { nth }
            | Step::FinishItems { nth }
            | Step::Hear { nth }
            | Step::BeginSection { nth, .. }
            | Step::EndSection { nth }
            | Step::Freeze { nth }
            | Step::Thaw { nth }
            | Step::Misbehave { nth }
            | Step::Garble { nth }
            | Step::AnswerAnother { nth }
            | Step::Crash { nth, .. }
            | Step::Obey { nth } => {
                if let Some(worker) = world.nth_worker(nth, FakePhase::Ready) {
                    self.play_work(world, worker, step);
                }
            }
        }
    }

    fn play_start(world: &mut World, slot: u32, step: &Step) {
        match *step {
            Step::Start { late, .. } => world.start_late(slot, late),
            Step::FailStart { permanent, .. } => world.fail_start(slot, permanent),
            _ => unreachable!("not a step of a starting worker"),
        }
    }

    fn play_work(&self, world: &mut World, worker: WorkerId, step: &Step) {
        let slot = worker.slot;
        match *step {
            Step::Begin { heard, .. } => {
                world.begin_unheard(slot);
                if heard {
                    world.hear(slot);
                }
            }
            Step::Finish { time, heard, .. } => {
                let time = Duration::from_micros(u64::from(time % self.longest_micros));
                world.finish_unheard(slot, time);
                if heard {
                    world.hear(slot);
                }
            }
            Step::AdvanceItem { .. } => world.advance_item(slot),
            Step::FinishItems { .. } => world.finish_items(slot),
            Step::Hear { .. } => world.hear(slot),
            Step::BeginSection { millis, .. } => {
                world.begin_section(slot, Duration::from_millis(millis));
            }
            Step::EndSection { .. } => world.end_section(slot),
            Step::Freeze { .. } => world.freeze(slot, true),
            Step::Thaw { .. } => world.freeze(slot, false),
            Step::Garble { .. } => world.garble(slot),
            Step::Misbehave { .. } => world.event(Event::Misbehaved { worker }),
            Step::AnswerAnother { .. } => world.answer_another(worker),
            Step::Crash { denied, .. } => {
                world.crash_for(slot, denied.then_some(KillCause::Denied));
            }
            Step::Obey { .. } => world.obey(slot),
            _ => unreachable!("not a step of a ready worker"),
        }
    }

    /// Ends the pool with well-behaved workers, after which every task has one outcome.
    fn end(&self, world: &mut World) {
        world.shutdown(self.last, None);
        for _ in 0..1_000 {
            world.run_dry();
            if world.ended {
                break;
            }
            assert!(world.next_tick(), "the pool has no deadline");
        }
        assert!(world.ended, "the pool does not end: {:?}", world.scheduler);
        assert!(world.workers.is_empty(), "a worker outlives the pool");
        for id in 1..world.next_id {
            assert!(world.outcome(id).is_some(), "task {id} has no outcome");
        }
    }

    /// Removes all steps that may keep a task from finishing.
    pub(super) fn harmless(mut self) -> Self {
        self.steps.retain(|step| {
            !matches!(
                step,
                Step::Crash { .. }
                    | Step::Cancel { .. }
                    | Step::Kill { .. }
                    | Step::Resize { .. }
                    | Step::SubmitWith { .. }
                    | Step::SubmitItems { constraints: Some(_), .. }
                    | Step::FailStart { .. }
                    | Step::Freeze { .. }
                    | Step::BeginSection { .. }
                    | Step::Misbehave { .. }
                    | Step::Garble { .. }
                    | Step::AnswerAnother { .. }
                    | Step::Break
                    | Step::Shutdown { .. }
            )
        });
        self.last = Shutdown::Drain;
        self
    }
}

/// Returns `true` if every task has finished.
pub(super) fn all_reported(world: &World) -> bool {
    (1..world.next_id).all(|id| world.outcome(id) == Some(TaskEnd::Reported))
}

/// Returns the id of a task that was never submitted.
pub(super) fn unknown_task() -> TaskId {
    TaskId::new(u64::MAX)
}
