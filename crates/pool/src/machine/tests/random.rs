//! Random play: any order of events keeps every invariant and gives each task one outcome.

use std::time::Duration;

use proptest::prelude::*;

use super::world::{World, settings};
use crate::machine::{End, Event, Settings, Shutdown, Terms};

#[derive(Debug, Clone)]
enum Step {
    Submit { retries: u32 },
    SubmitWith { retries: u32, terms: Terms },
    Cancel { nth: usize },
    Kill { nth: usize },
    WarmUp,
    Resize { workers: usize },
    Quiesce,
    Worn { worn: bool },
    Wait { millis: u64 },
    Start { slot: u32 },
    FailStart { slot: u32 },
    Begin { slot: u32 },
    Finish { slot: u32, micros: u64 },
    Crash { slot: u32 },
    Obey { slot: u32 },
    Tick,
    Shutdown { mode: Shutdown, timeout: Option<u64> },
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
        max_tasks in proptest::option::of(1..6_u64),
        max_age in proptest::option::of(1..100_u64),
        quarantine in 1..4_u32,
    ) -> Settings {
        Settings {
            credit,
            min_workers: min_workers.min(workers),
            idle_timeout: idle_timeout.map(Duration::from_millis),
            max_tasks,
            max_age: max_age.map(Duration::from_millis),
            quarantine,
            restart_limit: 1_000,
            ..settings(workers)
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let slot = 0..4_u32;
    let mode = prop_oneof![
        Just(Shutdown::Drain),
        Just(Shutdown::CancelPending),
        Just(Shutdown::Terminate),
        Just(Shutdown::Kill)
    ];
    let step = prop_oneof![
        12 => (0..3_u32).prop_map(|retries| Step::Submit { retries }),
        6 => (0..3_u32, terms()).prop_map(|(retries, terms)| Step::SubmitWith { retries, terms }),
        3 => (0..64_usize).prop_map(|nth| Step::Cancel { nth }),
        2 => (0..64_usize).prop_map(|nth| Step::Kill { nth }),
        1 => Just(Step::WarmUp),
        1 => (1..5_usize).prop_map(|workers| Step::Resize { workers }),
        1 => Just(Step::Quiesce),
        1 => any::<bool>().prop_map(|worn| Step::Worn { worn }),
        3 => (0..40_u64).prop_map(|millis| Step::Wait { millis }),
        8 => slot.clone().prop_map(|slot| Step::Start { slot }),
        1 => slot.clone().prop_map(|slot| Step::FailStart { slot }),
        12 => slot.clone().prop_map(|slot| Step::Begin { slot }),
        12 => (slot.clone(), 0..2_000_u64).prop_map(|(slot, micros)| Step::Finish { slot, micros }),
        3 => slot.clone().prop_map(|slot| Step::Crash { slot }),
        3 => slot.prop_map(|slot| Step::Obey { slot }),
        2 => Just(Step::Tick),
        1 => (mode, proptest::option::of(0..5_u64))
            .prop_map(|(mode, timeout)| Step::Shutdown { mode, timeout }),
    ];
    proptest::collection::vec(step, 1..250)
}

fn play(world: &mut World, script: &[Step]) -> Vec<u64> {
    let mut ids = Vec::new();
    for step in script {
        match *step {
            Step::Submit { retries } => ids.push(world.submit(retries)),
            Step::SubmitWith { retries, ref terms } => {
                ids.push(world.submit_with(retries, terms.clone()));
            }
            Step::Cancel { nth } | Step::Kill { nth } => {
                let accepted: Vec<u64> = world.places.keys().copied().collect();
                if !accepted.is_empty() {
                    let id = accepted[nth % accepted.len()];
                    match step {
                        Step::Kill { .. } => world.event(Event::Kill(world.places[&id])),
                        _ => world.cancel(id),
                    }
                }
            }
            Step::Resize { workers } => world.event(Event::Resize { workers }),
            Step::Quiesce => world.event(Event::Quiesce),
            Step::Worn { worn } => world.worn = worn,
            Step::Wait { millis } => world.wait(Duration::from_millis(millis)),
            Step::WarmUp => world.event(Event::WarmUp),
            Step::Start { slot } => world.start(slot),
            Step::FailStart { slot } => world.fail_start(slot, false),
            Step::Begin { slot } => world.begin(slot),
            Step::Finish { slot, micros } => world.finish(slot, Duration::from_micros(micros)),
            Step::Crash { slot } => world.crash(slot),
            Step::Obey { slot } => world.obey(slot),
            Step::Tick => {
                world.next_tick();
            }
            Step::Shutdown { mode, timeout } => {
                world.shutdown(mode, timeout.map(Duration::from_secs));
            }
        }
    }
    ids
}

/// Ends the pool with well-behaved workers and checks the ledger.
fn end(world: &mut World, ids: &[u64], mode: Shutdown) {
    world.shutdown(mode, None);
    for _ in 0..1_000 {
        world.run_dry();
        if world.ended {
            break;
        }
        assert!(world.next_tick(), "the pool waits for nothing");
    }
    assert!(world.ended, "the pool does not end");
    assert!(world.workers.is_empty(), "a worker outlives the pool");
    for id in ids {
        let end = world.outcome(*id).unwrap_or_else(|| panic!("task {id} has no outcome"));
        if matches!(end, End::Reported | End::Died | End::Killed(_)) {
            assert!(world.begun_order.contains(id), "task {id} ended as {end:?} and never began");
        }
        if matches!(end, End::Cancelled) {
            let retried = world.begun_order.iter().filter(|begun| *begun == id).count();
            assert!(retried <= 2, "a cancelled task began more often than its retries explain");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_play_ends_with_one_outcome_for_each_task(
        script in steps(),
        settings in any_settings(),
        last in prop_oneof![Just(Shutdown::Drain), Just(Shutdown::Kill)],
    ) {
        let mut world = World::new(settings);
        let ids = play(&mut world, &script);
        end(&mut world, &ids, last);
    }

    #[test]
    fn with_no_crash_and_no_cancel_every_task_finishes(
        script in steps(),
        settings in any_settings(),
    ) {
        let mut world = World::new(settings);
        let harmless: Vec<Step> = script
            .into_iter()
            .filter(|step| {
                !matches!(
                    step,
                    Step::Crash { .. }
                        | Step::Cancel { .. }
                        | Step::Kill { .. }
                        | Step::Resize { .. }
                        | Step::SubmitWith { .. }
                        | Step::FailStart { .. }
                        | Step::Shutdown { .. }
                )
            })
            .collect();
        let ids = play(&mut world, &harmless);
        end(&mut world, &ids, Shutdown::Drain);
        for id in ids {
            prop_assert_eq!(world.outcome(id), Some(End::Reported));
        }
    }
}
