//! Scripts: what may happen to a pool, in any order.

use std::time::Duration;

use brigade_wire::TaskId;
use proptest::prelude::*;

use super::world::{World, settings};
use crate::machine::{End, Event, Settings, Shutdown, Terms};

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Submit { retries: u32 },
    SubmitWith { retries: u32, terms: Terms },
    Cancel { nth: usize },
    Kill { nth: usize },
    WarmUp,
    Resize { workers: usize },
    Quiesce,
    Worn { worn: bool },
    Wait { millis: u64 },
    Tick,
    Start { slot: u32, late: bool },
    FailStart { slot: u32, permanent: bool },
    Begin { slot: u32, heard: bool },
    Finish { slot: u32, time: u32, heard: bool },
    Hear { slot: u32 },
    Freeze { slot: u32 },
    Thaw { slot: u32 },
    Misbehave { slot: u32 },
    AnswerAnother { slot: u32 },
    Crash { slot: u32 },
    Obey { slot: u32 },
    Shutdown { mode: Shutdown, timeout: Option<u64> },
}

/// What is played, and in which surroundings.
#[derive(Debug, Clone)]
pub(super) struct Script {
    pub(super) settings: Settings,
    /// What tasks take before the first one has run, as far as the machine thinks.
    pub(super) usual_micros: u64,
    /// Tasks take up to so long.
    pub(super) longest_micros: u32,
    pub(super) steps: Vec<Step>,
    /// How the pool ends if it has not ended by then.
    pub(super) last: Shutdown,
}

prop_compose! {
    fn terms()(
        priority in -2..3_i32,
        slot in proptest::option::weighted(0.2, 0..5_u32),
        queue in proptest::option::of(1..50_u64),
        run in proptest::option::of(1..50_u64),
    ) -> Terms {
        let (queue_limit, run_limit) = (queue.map(Duration::from_millis), run.map(Duration::from_millis));
        Terms { priority, slot, queue_limit, run_limit, ..Terms::default() }
    }
}

prop_compose! {
    fn any_settings()(
        credit in 1..6_u16,
        workers in 1..4_usize,
        min_workers in 0..3_usize,
        idle_timeout in proptest::option::of(0..50_u64),
        max_tasks in proptest::option::of(1..30_u64),
        max_age in proptest::option::of(1..100_u64),
        quarantine in 1..4_u32,
        restart_limit in prop_oneof![1 => 0..4_u32, 4 => Just(1_000)],
    ) -> Settings {
        Settings {
            credit,
            min_workers: min_workers.min(workers),
            idle_timeout: idle_timeout.map(Duration::from_millis),
            max_tasks,
            max_age: max_age.map(Duration::from_millis),
            quarantine,
            restart_limit,
            ..settings(workers)
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let slot = || 0..4_u32;
    let heard = || proptest::bool::weighted(0.8);
    prop_oneof![
        12 => (0..3_u32).prop_map(|retries| Step::Submit { retries }),
        6 => (0..3_u32, terms()).prop_map(|(retries, terms)| Step::SubmitWith { retries, terms }),
        3 => (0..24_usize).prop_map(|nth| Step::Cancel { nth }),
        2 => (0..24_usize).prop_map(|nth| Step::Kill { nth }),
        1 => Just(Step::WarmUp),
        1 => (1..5_usize).prop_map(|workers| Step::Resize { workers }),
        1 => Just(Step::Quiesce),
        1 => any::<bool>().prop_map(|worn| Step::Worn { worn }),
        3 => (0..40_u64).prop_map(|millis| Step::Wait { millis }),
        2 => Just(Step::Tick),
        8 => (slot(), any::<bool>()).prop_map(|(slot, late)| Step::Start { slot, late }),
        1 => (slot(), proptest::bool::weighted(0.1))
            .prop_map(|(slot, permanent)| Step::FailStart { slot, permanent }),
        12 => (slot(), heard()).prop_map(|(slot, heard)| Step::Begin { slot, heard }),
        12 => (slot(), any::<u32>(), heard())
            .prop_map(|(slot, time, heard)| Step::Finish { slot, time, heard }),
        2 => slot().prop_map(|slot| Step::Hear { slot }),
        1 => slot().prop_map(|slot| Step::Freeze { slot }),
        1 => slot().prop_map(|slot| Step::Thaw { slot }),
        1 => slot().prop_map(|slot| Step::Misbehave { slot }),
        1 => slot().prop_map(|slot| Step::AnswerAnother { slot }),
        3 => slot().prop_map(|slot| Step::Crash { slot }),
        3 => slot().prop_map(|slot| Step::Obey { slot }),
    ]
}

fn ending() -> impl Strategy<Value = Step> {
    let mode = prop_oneof![
        Just(Shutdown::Drain),
        Just(Shutdown::CancelPending),
        Just(Shutdown::Terminate),
        Just(Shutdown::Kill)
    ];
    prop_oneof![
        6 => step(),
        1 => (0..2_000_u64).prop_map(|millis| Step::Wait { millis }),
        1 => (mode, proptest::option::of(0..2_000_u64))
            .prop_map(|(mode, timeout)| Step::Shutdown { mode, timeout }),
    ]
}

prop_compose! {
    /// Any script: mostly work, and then an end that may take some wishes.
    pub(super) fn scripts()(
        settings in any_settings(),
        usual_micros in prop_oneof![Just(1), Just(10), Just(1_000), Just(1_000_000)],
        longest_micros in prop_oneof![Just(2), Just(50), Just(2_000)],
        work in proptest::collection::vec(step(), 1..300),
        ending in proptest::collection::vec(ending(), 0..40),
        last in prop_oneof![Just(Shutdown::Drain), Just(Shutdown::Kill)],
    ) -> Script {
        let steps = work.into_iter().chain(ending).collect();
        Script { settings, usual_micros, longest_micros, steps, last }
    }
}

impl Script {
    /// Plays the steps until the pool has ended; how many there were.
    pub(super) fn play(&self, world: &mut World) -> u64 {
        world.machine.usual_run = Duration::from_micros(self.usual_micros);
        // The driver begins so if workers are to be kept.
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
            Step::SubmitWith { retries, ref terms } => {
                world.submit_with(retries, terms.clone());
            }
            Step::Cancel { nth } => {
                if let Some(id) = world.nth_newest(nth) {
                    world.cancel(id);
                }
            }
            Step::Kill { nth } => {
                if let Some(id) = world.nth_newest(nth) {
                    world.kill(id);
                }
            }
            Step::Resize { workers } => world.event(Event::Resize { workers }),
            Step::Quiesce => world.event(Event::Quiesce),
            Step::Worn { worn } => world.worn = worn,
            Step::Wait { millis } => world.wait(Duration::from_millis(millis)),
            Step::WarmUp => world.event(Event::WarmUp),
            Step::Start { slot, late } => world.start_late(slot, late),
            Step::FailStart { slot, permanent } => world.fail_start(slot, permanent),
            Step::Begin { slot, heard } => {
                world.begin_unheard(slot);
                if heard {
                    world.hear(slot);
                }
            }
            Step::Finish { slot, time, heard } => {
                let time = Duration::from_micros(u64::from(time % self.longest_micros));
                world.finish_unheard(slot, time);
                if heard {
                    world.hear(slot);
                }
            }
            Step::Hear { slot } => world.hear(slot),
            Step::Freeze { slot } => world.freeze(slot, true),
            Step::Thaw { slot } => world.freeze(slot, false),
            Step::Misbehave { slot } => {
                if let Some(worker) = world.ready(slot) {
                    world.event(Event::Misbehaved { worker });
                }
            }
            Step::AnswerAnother { slot } => {
                if let Some(worker) = world.ready(slot) {
                    world.answer_another(worker);
                }
            }
            Step::Crash { slot } => world.crash(slot),
            Step::Obey { slot } => world.obey(slot),
            Step::Tick => {
                world.next_tick();
            }
            Step::Shutdown { mode, timeout } => {
                world.shutdown(mode, timeout.map(Duration::from_millis));
            }
        }
    }

    /// Ends the pool with well-behaved workers; every task has one outcome then.
    fn end(&self, world: &mut World) {
        world.shutdown(self.last, None);
        for _ in 0..1_000 {
            world.run_dry();
            if world.ended {
                break;
            }
            assert!(world.next_tick(), "the pool waits for nothing");
        }
        assert!(world.ended, "the pool does not end: {:?}", world.machine);
        assert!(world.workers.is_empty(), "a worker outlives the pool");
        for id in 1..world.next_id {
            assert!(world.outcome(id).is_some(), "task {id} has no outcome");
        }
    }

    /// The same without anything that may keep a task from finishing.
    pub(super) fn harmless(mut self) -> Self {
        self.steps.retain(|step| {
            !matches!(
                step,
                Step::Crash { .. }
                    | Step::Cancel { .. }
                    | Step::Kill { .. }
                    | Step::Resize { .. }
                    | Step::SubmitWith { .. }
                    | Step::FailStart { .. }
                    | Step::Freeze { .. }
                    | Step::Misbehave { .. }
                    | Step::AnswerAnother { .. }
                    | Step::Shutdown { .. }
            )
        });
        self.last = Shutdown::Drain;
        self
    }
}

/// Whether every task has run to its end.
pub(super) fn all_reported(world: &World) -> bool {
    (1..world.next_id).all(|id| world.outcome(id) == Some(End::Reported))
}

/// A task that nobody has submitted.
pub(super) fn nobodys_task() -> TaskId {
    TaskId::new(u64::MAX)
}
