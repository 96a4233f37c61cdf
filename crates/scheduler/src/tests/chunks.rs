//! Chunks: their items end, run again and expire by the rules for tasks.

use brigade_base::{Attempt, TaskId};

use super::world::{MILLI, World, settings, started};
use crate::{Constraints, Event, Returned, Settings, TaskEnd};

/// Makes the worker finish this number of items and start the next one.
fn run_to(world: &mut World, slot: u32, finished: u32) {
    world.begin(slot);
    for _ in 0..=2 * finished {
        world.advance_item(slot);
    }
}

#[test]
fn a_death_costs_only_the_item_that_ran() {
    let mut world = started(settings(1));
    let first = world.submit_items(5, 0, None);
    run_to(&mut world, 0, 2);
    world.crash(0);
    let ends: Vec<_> = (first..first + 5).map(|id| world.outcome(id)).collect();
    assert_eq!(
        ends,
        [Some(TaskEnd::Finished), Some(TaskEnd::Finished), Some(TaskEnd::Died), None, None]
    );
    world.run_dry();
    let counters = world.scheduler.counters();
    assert_eq!((counters.submitted, counters.finished, counters.failed_by_death), (5, 4, 1));
    assert_eq!((counters.requeued, counters.retried), (2, 0));
}

#[test]
fn an_item_that_keeps_killing_workers_is_quarantined_alone() {
    let mut world = started(Settings { quarantine: 3, ..settings(1) });
    let first = world.submit_items(4, 100, None);
    run_to(&mut world, 0, 1);
    for death in 1..=3 {
        assert_eq!(world.outcome(first + 1), None, "{death}");
        world.crash(0);
        world.start(0);
        run_to(&mut world, 0, 0);
    }
    assert_eq!(world.outcome(first + 1), Some(TaskEnd::Quarantined));
    world.run_dry();
    let counters = world.scheduler.counters();
    assert_eq!((counters.finished, counters.failed_by_death, counters.retried), (3, 1, 2));
}

#[test]
fn a_death_between_two_items_costs_none_of_them_a_retry() {
    let mut world = started(Settings { quarantine: 1, ..settings(1) });
    let first = world.submit_items(3, 0, None);
    run_to(&mut world, 0, 1);
    world.advance_item(0);
    world.crash(0);
    world.run_dry();
    let ends: Vec<_> = (first..first + 3).map(|id| world.outcome(id)).collect();
    let reported = Some(TaskEnd::Reported);
    assert_eq!(ends, [Some(TaskEnd::Finished), Some(TaskEnd::Finished), reported]);
}

/// Returns a chunk that is divided into three parts.
fn submit_items_for_three(world: &mut World, count: u32) -> u64 {
    while world.next_id % 4 != 3 {
        world.submit(0);
        world.run_dry();
    }
    world.submit_items(count, 0, None)
}

#[test]
fn returned_items_start_in_their_order_before_other_tasks() {
    let mut world = started(settings(1));
    let first = submit_items_for_three(&mut world, 7);
    let other = world.submit(0);
    run_to(&mut world, 0, 0);
    let before = world.start_order.len() - 1;
    world.finish(0, MILLI);
    world.run_dry();
    assert_eq!(world.start_order[before..], [first, first + 1, first + 3, first + 5, other]);
}

#[test]
fn returned_items_are_shared_by_all_workers() {
    let mut world = started(settings(2));
    let first = submit_items_for_three(&mut world, 7);
    run_to(&mut world, 0, 0);
    run_to(&mut world, 1, 0);
    for slot in [0, 1] {
        world.finish(slot, MILLI);
    }
    assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
    assert!(world.workers.values().all(|fake| !fake.frames.is_empty()));
    world.run_dry();
    assert_eq!(world.scheduler.counters().retried, 0);
}

#[test]
fn returned_items_keep_their_queue_deadline() {
    let limit = Constraints { queue_limit: Some(10 * MILLI), ..Constraints::default() };
    let mut world = started(settings(1));
    let first = world.submit_items(3, 5, limit);
    run_to(&mut world, 0, 0);
    world.wait(4 * MILLI);
    let held = world.submit(0);
    world.crash(0);
    assert_eq!(world.outcome(first + 1), None);
    world.wait(6 * MILLI);
    let ends: Vec<_> = (first..first + 3).map(|id| world.outcome(id)).collect();
    assert_eq!(ends, [None, Some(TaskEnd::Expired), Some(TaskEnd::Expired)], "one had begun");
    world.start(0);
    world.run_dry();
    assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
    assert_eq!(world.outcome(held), Some(TaskEnd::Reported));
    assert_eq!(world.scheduler.counters().expired, 2);
}

#[test]
fn items_that_share_their_hard_limit_take_their_part_along() {
    let limit = Constraints {
        hard_limit: Some(10 * MILLI),
        items_share_limit: true,
        ..Constraints::default()
    };
    let mut world = started(settings(1));
    let first = world.submit_items(4, 1, limit);
    run_to(&mut world, 0, 1);
    world.wait(39 * MILLI);
    assert!(!world.workers[&0].doomed);
    world.crash(0);
    world.start(0);
    run_to(&mut world, 0, 0);
    world.wait(10 * MILLI);
    assert!(world.workers[&0].doomed, "the item that runs again has the time of one");
    world.obey(0);
    assert!(matches!(world.outcome(first + 1), Some(TaskEnd::Killed(_))));
}

#[test]
fn a_cancelled_chunk_ends_with_the_item_that_runs() {
    for dies in [false, true] {
        let mut world = started(settings(1));
        let first = world.submit_items(3, 5, None);
        run_to(&mut world, 0, 0);
        world.cancel(first);
        if dies {
            world.crash(0);
        } else {
            world.finish(0, MILLI);
        }
        let end = if dies { TaskEnd::Died } else { TaskEnd::Reported };
        let ends: Vec<_> = (first..first + 3).map(|id| world.outcome(id)).collect();
        assert_eq!(ends, [Some(end), Some(TaskEnd::Cancelled), Some(TaskEnd::Cancelled)]);
        assert_eq!(world.scheduler.counters().cancelled, 2);
    }
}

#[test]
fn a_worker_that_returns_no_item_breaks_the_protocol() {
    for (items, finished) in [(Some(2), 2), (None, 1)] {
        let mut world = started(settings(1));
        let id = match items {
            Some(count) => world.submit_items(count, 0, None),
            None => world.submit(0),
        };
        run_to(&mut world, 0, 0);
        let (worker, task, attempt) = (world.workers[&0].id, TaskId::new(id), Attempt::first());
        let (run_time, worn, parts) = (MILLI, false, 1);
        let finished = std::num::NonZeroU32::new(finished).expect("some");
        let failed = Vec::new();
        let returned = Returned { worker, task, attempt, run_time, worn, finished, parts, failed };
        world.event(Event::Returned(Box::new(returned)));
        assert!(world.workers[&0].doomed);
    }
}
