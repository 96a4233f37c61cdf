//! The number of workers and their lifetimes: one promise per test.

use std::time::Duration;

use super::world::{MILLI, World, settings, started};
use crate::{Constraints, Event, Settings, TaskEnd};

fn generations(world: &World) -> Vec<(u32, u32)> {
    world.workers.values().map(|fake| (fake.id.slot, fake.id.generation)).collect()
}

#[test]
fn workers_above_the_minimum_stop_when_they_are_idle() {
    let limits = Settings { min_workers: 1, idle_timeout: Some(10 * MILLI), ..settings(3) };
    let mut world = started(limits);
    world.wait(9 * MILLI);
    assert!(world.workers.values().all(|fake| !fake.stop_asked), "too early");
    world.wait(MILLI);
    world.run_dry();
    assert_eq!(world.workers.len(), 1);
    assert!(world.scheduler.next_deadline().is_none(), "an idle pool has no deadline");
}

#[test]
fn the_minimum_of_workers_is_started_at_once_and_replaced() {
    let mut world = World::new(Settings { min_workers: 2, ..settings(3) });
    world.event(Event::Tick);
    assert_eq!(world.workers.len(), 2);
    world.run_dry();
    world.crash(0);
    assert_eq!(generations(&world), [(0, 2), (1, 1)]);
}

#[test]
fn shrinking_keeps_processes_and_lets_the_others_finish() {
    let mut world = started(settings(3));
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    for slot in world.slots() {
        world.begin(slot);
    }
    world.event(Event::Resize { workers: 1 });
    world.run_dry();
    assert_eq!(generations(&world), [(0, 1)]);
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
    world.event(Event::Resize { workers: 2 });
    assert_eq!(world.workers.len(), 1, "a larger pool starts workers when there is work");
    for _ in 0..2 {
        world.submit(0);
    }
    assert_eq!(generations(&world), [(0, 1), (1, 2)]);
}

#[test]
fn a_quiesced_pool_stops_its_workers_until_the_next_task() {
    let mut world = started(Settings { min_workers: 2, ..settings(2) });
    world.submit(0);
    let busy = world.workers.values().find(|fake| !fake.frames.is_empty()).unwrap().id.slot;
    world.begin(busy);
    world.event(Event::Quiesce);
    for slot in world.slots() {
        world.obey(slot);
    }
    assert_eq!(world.workers.len(), 1, "a running task goes on");
    world.finish(busy, MILLI);
    let id = world.submit(0);
    world.run_dry();
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}

#[test]
fn a_worker_that_is_no_longer_wanted_is_not_replaced() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    world.start(0);
    world.event(Event::Quiesce);
    world.submit(0);
    world.obey(0);
    world.start(0);
    assert_eq!(world.workers[&0].frames.len(), 1, "there is a worker for the task");
    // The kill arrives after the handshake.
    world.start_late(1, true);
    let spawns = world.spawns;
    world.crash(1);
    assert_eq!(world.spawns, spawns);
}

#[test]
fn a_worker_is_replaced_after_its_maximum_number_of_tasks() {
    let mut world = started(Settings { max_tasks: Some(3), ..settings(1) });
    let ids: Vec<u64> = (0..10).map(|_| world.submit(0)).collect();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
    assert_eq!(world.start_order, ids);
    assert_eq!(generations(&world), [(0, 4)]);
}

#[test]
fn tasks_of_a_stopping_worker_move_to_an_idle_one() {
    for (used_to, settings) in [
        (MILLI, Settings { max_tasks: Some(2), ..settings(2) }),
        (Duration::from_micros(1), Settings { max_tasks: Some(2), ..settings(2) }),
    ] {
        let mut world = World::new(settings);
        world.scheduler.run_times.set_usual(used_to);
        world.submit(0);
        world.start(0);
        let waits = world.submit(0);
        world.begin(0);
        assert!(world.workers[&0].stop_asked, "it was sent its maximum number of tasks");
        world.event(Event::WarmUp);
        world.start(1);
        world.wait(3 * MILLI);
        world.begin(1);
        assert_eq!(world.start_order.last(), Some(&waits), "{used_to:?}");
    }
}

#[test]
fn the_greatest_number_of_tasks_is_no_overflow() {
    let world = started(Settings { max_tasks: Some(u64::MAX), ..settings(8) });
    for fake in world.workers.values() {
        assert!(world.scheduler.allowance(fake.id) > Some(u64::MAX / 10 * 8));
    }
}

#[test]
fn workers_that_start_together_do_not_stop_together() {
    let world = started(Settings { max_tasks: Some(1_000), ..settings(8) });
    let mut allowances: Vec<u64> =
        world.workers.values().filter_map(|fake| world.scheduler.allowance(fake.id)).collect();
    assert!(allowances.iter().all(|tasks| (900..=1_000).contains(tasks)), "{allowances:?}");
    allowances.sort_unstable();
    allowances.dedup();
    assert!(allowances.len() > 4, "{allowances:?}");
}

#[test]
fn an_old_or_large_worker_finishes_its_task_and_is_replaced() {
    let mut world = started(Settings { max_age: Some(10 * MILLI), ..settings(1) });
    let id = world.submit(0);
    world.begin(0);
    world.wait(10 * MILLI);
    assert!(world.workers[&0].stop_asked);
    world.wait(Duration::from_secs(60));
    assert!(!world.workers[&0].doomed, "the escalation waits for the task");
    world.run_dry();
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));

    let mut world = started(settings(1));
    world.worn = true;
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
    assert_eq!(world.spawns, 3);
}

#[test]
fn a_reserved_task_runs_even_if_its_worker_is_replaced() {
    let mut world = World::new(settings(3));
    let reserved = |slot| Some(Constraints { slot: Some(slot), ..Constraints::default() });
    let ids: Vec<u64> = (0..3).map(|slot| world.submit_with(0, reserved(slot))).collect();
    assert_eq!(world.workers.len(), 3, "all slots are started for their tasks");
    world.fail_start(1, false);
    world.run_dry();
    world.next_tick();
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}

#[test]
fn a_kill_plans_a_postponed_start_without_waiting_for_the_death() {
    let mut world = World::new(Settings { min_workers: 1, ..settings(2) });
    let limit = Constraints { hard_limit: Some(10 * MILLI), ..Constraints::default() };
    let killed = world.submit_with(0, Some(limit));
    let other = world.submit(0);
    world.start(0);
    for _ in 0..3 {
        world.fail_start(1, false);
        world.next_tick();
    }
    world.fail_start(1, false);
    world.cancel(other);
    world.begin(0);
    world.wait(10 * MILLI);
    assert!(world.workers[&0].doomed, "task {killed} was too late");
    world.wait(Duration::from_secs(1));
    assert!(world.workers.contains_key(&1), "it is started although the other still dies");
}

#[test]
fn removing_a_slot_cancels_its_tasks() {
    let mut world = World::new(settings(2));
    let constraints = Some(Constraints { slot: Some(1), ..Constraints::default() });
    let before = world.submit_with(0, constraints.clone());
    world.event(Event::Resize { workers: 1 });
    let after = world.submit_with(0, constraints);
    assert_eq!([before, after].map(|id| world.outcome(id)), [Some(TaskEnd::Cancelled); 2]);
}

#[test]
fn a_warm_up_ends_even_if_workers_stop_before_the_last_is_ready() {
    let mut world = World::new(Settings { idle_timeout: Some(MILLI), ..settings(2) });
    world.event(Event::WarmUp);
    world.start(0);
    world.wait(2 * MILLI);
    world.obey(0);
    assert!(world.scheduler.is_warming(), "one worker has not been ready yet");
    world.start(1);
    assert!(!world.scheduler.is_warming());
}

#[test]
fn a_quiesce_ends_a_warm_up() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    world.event(Event::Quiesce);
    assert!(!world.scheduler.is_warming());
}

fn busy(world: &World) -> Vec<u32> {
    let busy = world.workers.values().filter(|fake| !fake.frames.is_empty());
    busy.map(|fake| fake.id.slot).collect()
}

#[test]
fn spare_workers_start_at_once_and_get_no_task_of_their_own() {
    let mut world = World::new(Settings { spare_workers: 2, ..settings(2) });
    world.event(Event::Tick);
    assert_eq!(world.workers.len(), 2);
    for _ in 0..4 {
        for slot in world.slots() {
            world.start(slot);
        }
        world.submit(0);
    }
    assert_eq!(world.workers.len(), 4, "as many spare workers as before");
    assert_eq!(busy(&world).len(), 2);
}

#[test]
fn a_spare_worker_takes_the_place_of_a_dead_one_at_once() {
    let mut world = started(Settings { spare_workers: 1, ..settings(1) });
    let id = world.submit(1);
    let slot = busy(&world)[0];
    world.begin(slot);
    world.crash(slot);
    assert_eq!(busy(&world), [1 - slot], "the task runs again without waiting for a process");
    assert_eq!(generations(&world)[slot as usize], (slot, 2), "there is a new spare worker");
    world.run_dry();
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}

#[test]
fn a_task_goes_to_the_older_of_two_unused_workers() {
    let mut world = started(Settings { spare_workers: 1, ..settings(1) });
    world.submit(0);
    let slot = busy(&world)[0];
    world.begin(slot);
    world.crash(slot);
    world.start(slot);
    for why in ["the spare worker is older", "a worker that was used is better than a new one"] {
        world.submit(0);
        assert_eq!(busy(&world), [1 - slot], "{why}");
        world.run_dry();
    }
}

#[test]
fn a_spare_worker_does_not_wait_for_the_exit_of_another() {
    let limits = Settings { spare_workers: 1, max_tasks: Some(1), ..settings(1) };
    let mut world = started(limits);
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    let first = busy(&world)[0];
    world.begin(first);
    world.finish(first, MILLI);
    assert!(world.workers[&first].stop_asked, "it has had its only task");
    assert_eq!(busy(&world), [1 - first]);
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}
