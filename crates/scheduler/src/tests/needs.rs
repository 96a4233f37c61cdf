//! Tasks that need resources: one promise per test.

use brigade_base::{Need, Needs};

use super::world::{MILLI, World, settings, started};
use crate::{Constraints, Event, Failure, KillCause, Resource, Retry, Settings, TaskEnd};

/// A pool of three workers with two GPUs and eight units of memory.
fn pool() -> World {
    started(with_resources(3))
}

fn with_resources(workers: usize) -> Settings {
    let resources = vec![Resource::Indexed(2), Resource::Sum(8)];
    Settings { resources, ..settings(workers) }
}

fn needs(gpus: u64, memory: u64) -> Constraints {
    let amounts = [(0, gpus), (1, memory)];
    let needs = amounts.map(|(resource, amount)| Need { resource, amount });
    Constraints { needs: Some(Needs::from(needs.to_vec())), ..Constraints::default() }
}

fn begin_all(world: &mut World) {
    for slot in world.slots() {
        world.begin(slot);
    }
}

#[test]
fn no_more_run_than_there_are_resources_for() {
    let mut world = pool();
    let ids: Vec<u64> = (0..3).map(|_| world.submit_with(0, needs(1, 0))).collect();
    begin_all(&mut world);
    assert_eq!(world.start_order, ids[..2]);
    world.run_dry();
    assert_eq!(world.start_order, ids);
}

#[test]
fn others_run_while_a_task_waits_for_resources() {
    let mut world = pool();
    let first = world.submit_with(0, needs(2, 0));
    world.submit_with(0, needs(2, 0));
    let (memory, plain) = (world.submit_with(0, needs(0, 8)), world.submit(0));
    begin_all(&mut world);
    world.start_order.sort_unstable();
    assert_eq!(world.start_order, [first, memory, plain]);
}

#[test]
fn what_a_killed_task_has_is_free_when_its_process_is_gone() {
    let mut world = pool();
    let deadline = Some(10 * MILLI);
    let late = world.submit_with(0, Constraints { hard_limit: deadline, ..needs(2, 8) });
    begin_all(&mut world);
    let next = world.submit_with(0, needs(1, 1));
    world.wait(10 * MILLI);
    begin_all(&mut world);
    assert_eq!(world.start_order, [late]);
    let doomed = world.workers.values().find(|it| it.doomed).expect("it is killed").id.slot;
    world.obey(doomed);
    begin_all(&mut world);
    assert_eq!(world.outcome(late), Some(TaskEnd::Killed(KillCause::Deadline)));
    assert_eq!(world.start_order, [late], "its process still exists");
    world.reap();
    begin_all(&mut world);
    assert_eq!(world.start_order, [late, next]);
}

#[test]
fn a_task_that_pauses_has_no_resources() {
    let mut world = pool();
    let retry = Retry::new().delay(100 * MILLI);
    let again = Constraints { retry, retries_panics: true, ..needs(2, 0) };
    let first = world.submit_with(1, again);
    let other = world.submit_with(0, needs(2, 0));
    world.failure = Some(Failure::Panic);
    world.run_dry();
    assert_eq!(world.start_order, [first, other]);
    world.wait(100 * MILLI);
    world.run_dry();
    assert_eq!(world.start_order, [first, other, first]);
}

#[test]
fn no_process_is_started_for_tasks_that_wait_for_resources() {
    let mut world = World::new(with_resources(3));
    for _ in 0..3 {
        world.submit_with(0, needs(2, 0));
    }
    assert_eq!(world.workers.len(), 1);
    world.submit_with(0, needs(0, 1));
    world.submit(0);
    assert_eq!(world.workers.len(), 3);
}

#[test]
fn what_a_cancelled_task_waited_for_goes_to_those_behind() {
    let mut world = pool();
    let first = world.submit_with(0, needs(0, 5));
    let (large, small) = (world.submit_with(0, needs(0, 8)), world.submit_with(0, needs(0, 3)));
    // It is assigned at once, and nothing else has arrived since.
    let other = world.submit_with(0, needs(1, 0));
    begin_all(&mut world);
    assert_eq!(world.start_order, [first, other], "the second one has a claim on what is left");
    world.cancel(large);
    begin_all(&mut world);
    assert_eq!(world.start_order, [first, other, small]);
}

#[test]
fn waiting_tasks_can_be_cancelled_and_count_in_the_queue() {
    let mut world = started(Settings { queue_limit: 2, ..with_resources(3) });
    world.submit_with(0, needs(2, 0));
    let waiting = [world.submit_with(0, needs(1, 0)), world.submit_with(0, needs(2, 0))];
    assert!(!world.scheduler.has_room());
    for id in waiting {
        world.cancel(id);
        assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    }
    assert!(world.scheduler.has_room());
    world.event(Event::Tick);
    world.run_dry();
}
