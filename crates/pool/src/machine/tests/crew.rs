//! How many workers there are, and for how long: one promise a test.

use std::time::Duration;

use super::world::{World, settings};
use crate::machine::{End, Event, Settings, Terms};

const MILLI: Duration = Duration::from_millis(1);

fn started(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.event(Event::WarmUp);
    for slot in world.slots() {
        world.start(slot);
    }
    world
}

fn generations(world: &World) -> Vec<(u32, u32)> {
    world.workers.values().map(|fake| (fake.id.slot, fake.id.generation)).collect()
}

#[test]
fn workers_above_the_fewest_leave_when_they_have_had_nothing_to_do() {
    let limits = Settings { min_workers: 1, idle_timeout: Some(10 * MILLI), ..settings(3) };
    let mut world = started(limits);
    world.wait(9 * MILLI);
    assert!(world.workers.values().all(|fake| !fake.stop_asked), "too early");
    world.wait(MILLI);
    world.run_dry();
    assert_eq!(world.workers.len(), 1);
    assert!(world.machine.next_deadline().is_none(), "an idle pool waits for nothing");
}

#[test]
fn the_fewest_workers_are_started_at_once_and_replaced() {
    let mut world = World::new(Settings { min_workers: 2, ..settings(3) });
    world.event(Event::Tick);
    assert_eq!(world.workers.len(), 2);
    world.run_dry();
    world.crash(0);
    assert_eq!(generations(&world), [(0, 2), (1, 1)]);
}

#[test]
fn a_smaller_pool_keeps_the_same_processes_and_lets_the_others_finish() {
    let mut world = started(settings(3));
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    for slot in world.slots() {
        world.begin(slot);
    }
    world.event(Event::Resize { workers: 1 });
    world.run_dry();
    assert_eq!(generations(&world), [(0, 1)]);
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(End::Reported)));
    world.event(Event::Resize { workers: 2 });
    assert_eq!(world.workers.len(), 1, "a larger pool starts workers when there is work");
    for _ in 0..2 {
        world.submit(0);
    }
    assert_eq!(generations(&world), [(0, 1), (1, 2)]);
}

#[test]
fn a_resting_pool_gives_its_processes_back_and_the_next_task_starts_one() {
    let mut world = started(Settings { min_workers: 2, ..settings(2) });
    world.submit(0);
    let busy = world.workers.values().find(|fake| !fake.frames.is_empty()).unwrap().id.slot;
    world.begin(busy);
    world.event(Event::Quiesce);
    for slot in world.slots() {
        world.obey(slot);
    }
    assert_eq!(world.workers.len(), 1, "what runs goes on");
    world.finish(busy, MILLI);
    let id = world.submit(0);
    world.run_dry();
    assert_eq!(world.outcome(id), Some(End::Reported));
}

#[test]
fn a_worker_that_is_not_wanted_any_more_is_not_replaced() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    world.start(0);
    world.event(Event::Quiesce);
    world.submit(0);
    world.obey(0);
    world.start(0);
    assert_eq!(world.workers[&0].frames.len(), 1, "there is a worker for the task");
    // The kill comes when the handshake is done.
    world.start_late(1, true);
    let spawns = world.spawns;
    world.crash(1);
    assert_eq!(world.spawns, spawns);
}

#[test]
fn a_worker_is_replaced_after_its_number_of_tasks_and_the_backlog_goes_on() {
    let mut world = started(Settings { max_tasks: Some(3), ..settings(1) });
    let ids: Vec<u64> = (0..10).map(|_| world.submit(0)).collect();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(End::Reported)));
    assert_eq!(world.begun_order, ids);
    assert_eq!(generations(&world), [(0, 4)]);
}

#[test]
fn what_waits_in_a_worker_that_leaves_moves_to_one_that_has_nothing_to_do() {
    for (used_to, settings) in [
        (MILLI, Settings { max_tasks: Some(2), ..settings(2) }),
        (Duration::from_micros(1), Settings { max_tasks: Some(2), ..settings(2) }),
    ] {
        let mut world = World::new(settings);
        world.machine.usual_run = used_to;
        world.submit(0);
        world.start(0);
        let waits = world.submit(0);
        world.begin(0);
        assert!(world.workers[&0].stop_asked, "it has been sent its number of tasks");
        world.event(Event::WarmUp);
        world.start(1);
        world.wait(3 * MILLI);
        world.begin(1);
        assert_eq!(world.begun_order.last(), Some(&waits), "{used_to:?}");
    }
}

#[test]
fn workers_that_started_together_do_not_leave_together() {
    let world = started(Settings { max_tasks: Some(1_000), ..settings(8) });
    let mut allowances: Vec<u64> =
        world.workers.values().filter_map(|fake| world.machine.allowance(fake.id)).collect();
    assert!(allowances.iter().all(|tasks| (900..=1_000).contains(tasks)), "{allowances:?}");
    allowances.sort_unstable();
    allowances.dedup();
    assert!(allowances.len() > 4, "{allowances:?}");
}

#[test]
fn a_worker_that_is_old_or_too_large_finishes_what_it_runs_and_is_replaced() {
    let mut world = started(Settings { max_age: Some(10 * MILLI), ..settings(1) });
    let id = world.submit(0);
    world.begin(0);
    world.wait(10 * MILLI);
    assert!(world.workers[&0].stop_asked);
    world.wait(Duration::from_secs(60));
    assert!(!world.workers[&0].doomed, "the ladder waits for the task");
    world.run_dry();
    assert_eq!(world.outcome(id), Some(End::Reported));

    let mut world = started(settings(1));
    world.worn = true;
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(End::Reported)));
    assert_eq!(world.spawns, 3);
}

#[test]
fn a_task_for_one_worker_runs_there_also_after_that_one_was_replaced() {
    let mut world = World::new(settings(3));
    let reserved = |slot| Some(Terms { slot: Some(slot), ..Terms::default() });
    let ids: Vec<u64> = (0..3).map(|slot| world.submit_with(0, reserved(slot))).collect();
    assert_eq!(world.workers.len(), 3, "all are started for it");
    world.fail_start(1, false);
    world.run_dry();
    world.next_tick();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(End::Reported)));
}

#[test]
fn a_slot_that_is_gone_cancels_its_tasks() {
    let mut world = World::new(settings(2));
    let terms = Some(Terms { slot: Some(1), ..Terms::default() });
    let before = world.submit_with(0, terms.clone());
    world.event(Event::Resize { workers: 1 });
    let after = world.submit_with(0, terms);
    assert_eq!([before, after].map(|id| world.outcome(id)), [Some(End::Cancelled); 2]);
}

#[test]
fn a_warm_up_ends_although_workers_leave_before_the_last_one_is_ready() {
    let mut world = World::new(Settings { idle_timeout: Some(MILLI), ..settings(2) });
    world.event(Event::WarmUp);
    world.start(0);
    world.wait(2 * MILLI);
    world.obey(0);
    assert!(world.machine.is_warming(), "one has not been ready yet");
    world.start(1);
    assert!(!world.machine.is_warming());
}

#[test]
fn a_rest_ends_a_warm_up() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    world.event(Event::Quiesce);
    assert!(!world.machine.is_warming());
}
