//! Shortages, drains with stopped workers, pools that rest, and the longest times that may be given.

use std::time::Duration;

use super::world::{World, settings};
use crate::machine::{End, Event, KillCause, Settings, Shutdown, Terms};

const MILLI: Duration = Duration::from_millis(1);

fn started(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.event(Event::WarmUp);
    for slot in world.slots() {
        world.start(slot);
    }
    world
}

/// Every start fails at once for so long; then all succeed.
fn shortage(workers: usize, time: Duration) -> (World, Duration) {
    let mut world = World::new(settings(workers));
    let begin = world.now;
    for _ in 0..50 {
        world.submit(0);
    }
    while world.now < begin + time && !world.broke {
        for slot in world.slots() {
            world.fail_start(slot, false);
        }
        if world.workers.is_empty() && !world.broke {
            assert!(world.next_tick(), "nobody tries again");
        }
    }
    let took = world.now.saturating_sub(begin);
    (world, took)
}

#[test]
fn a_short_shortage_breaks_no_pool_however_many_workers_it_has() {
    for workers in [1, 4, 8, 64] {
        let (mut world, _) = shortage(workers, 20 * MILLI);
        assert!(!world.broke, "{workers} workers");
        world.run_dry();
        assert_eq!(world.outcomes.len(), 50);
    }
}

#[test]
fn a_long_shortage_breaks_pools_of_every_size_after_the_same_time() {
    for workers in [1, 4, 8, 64] {
        let (world, took) = shortage(workers, Duration::from_secs(60));
        assert!(world.broke);
        assert_eq!(took, 70 * MILLI, "{workers} workers");
    }
}

#[test]
fn a_worker_that_was_busy_when_the_pool_was_sent_to_rest_follows() {
    let mut world = started(settings(2));
    let id = world.submit(0);
    for slot in [0, 1] {
        world.begin(slot);
    }
    world.event(Event::Quiesce);
    for slot in [0, 1] {
        world.obey(slot);
    }
    assert_eq!(world.workers.len(), 1, "the other one runs a task");
    world.run_dry();
    assert_eq!(world.outcome(id), Some(End::Reported));
    assert!(world.workers.is_empty(), "a process is left for ever");
    world.submit(0);
    assert_eq!(world.workers.len(), 1, "work wakes the pool");
    world.run_dry();
    assert_eq!(world.workers.len(), 1);
}

/// Tasks that stop their worker, by themselves, in a pool that drains.
fn drain_of_stoppers(tasks: usize, retries: u32) -> (World, Duration) {
    let mut world = started(settings(1));
    for _ in 0..tasks {
        world.submit(retries);
    }
    world.shutdown(Shutdown::Drain, None);
    let begin = world.now;
    while !world.ended {
        for slot in world.slots() {
            world.start(slot);
            world.begin(slot);
            let runs = world.workers.get(&slot).is_some_and(|fake| !fake.frames.is_empty());
            world.freeze(slot, runs);
            world.obey(slot);
        }
        if world.workers.values().all(|fake| fake.frozen && !fake.doomed) && !world.ended {
            assert!(world.next_tick());
        }
    }
    let took = world.now.saturating_sub(begin);
    (world, took)
}

#[test]
fn a_task_that_stops_its_worker_is_not_retried_by_a_drain() {
    let (world, took) = drain_of_stoppers(1, 5);
    assert_eq!(world.outcome(1), Some(End::Killed(KillCause::Stopped)));
    assert_eq!(world.spawns, 1);
    assert!(took <= 300 * MILLI, "{took:?}");
}

#[test]
fn a_drain_finds_each_stopped_worker_as_soon_as_the_first() {
    let (_, took) = drain_of_stoppers(10, 0);
    assert!(took <= 10 * 250 * MILLI, "{took:?}");
}

#[test]
fn the_report_tells_of_workers_that_a_drain_kills() {
    let (world, _) = drain_of_stoppers(1, 0);
    let tally = world.machine.tally();
    assert_eq!((tally.killed, tally.failed, tally.workers_killed), (1, 0, 1));
    // A deadline in a drain is no death of the worker by itself either.
    let mut world = started(settings(1));
    world.submit_with(0, Terms { run_limit: Some(MILLI), ..Terms::default() });
    world.begin(0);
    world.shutdown(Shutdown::Drain, None);
    world.wait(MILLI);
    world.obey(0);
    let tally = world.machine.tally();
    assert_eq!((tally.killed, tally.failed, tally.workers_killed), (1, 0, 1));
}

#[test]
fn the_longest_times_never_overflow() {
    let max = Duration::MAX;
    let longest = || Settings {
        stop_grace: max,
        max_age: Some(max),
        idle_timeout: Some(max),
        restart_window: max,
        ..settings(2)
    };
    for mode in [Shutdown::Drain, Shutdown::CancelPending, Shutdown::Terminate, Shutdown::Kill] {
        for timeout in [None, Some(MILLI), Some(max)] {
            let mut world = started(longest());
            for _ in 0..3 {
                world.crash(0);
                world.start(0);
            }
            let all = Terms { queue_limit: Some(max), run_limit: Some(max), ..Terms::default() };
            world.submit_with(1, all);
            for _ in 0..300 {
                world.submit(0);
                world.begin(1);
                world.finish(1, max);
            }
            world.event(Event::Resize { workers: 1 });
            world.machine.handle(
                world.now,
                Event::Shutdown { mode, timeout },
                &mut crate::machine::Outbox::default(),
            );
            let mut outbox = crate::machine::Outbox::default();
            let again = Event::Shutdown { mode: Shutdown::Terminate, timeout: Some(max) };
            world.machine.handle(world.now, again, &mut outbox);
            world.machine.handle(world.now + 2 * MILLI, Event::Tick, &mut outbox);
        }
    }
}

#[test]
fn all_that_is_under_way_to_a_worker_is_known_not_only_what_is_due() {
    let mut world = started(settings(1));
    world.get_used_to(Duration::ZERO);
    let (answered, runs) = (world.submit(0), world.submit(0));
    world.begin(0);
    world.run_ahead(0);
    let worker = world.workers[&0].id;
    assert_eq!(world.machine.due(worker), Some(&answered));
    let under_way: Vec<u64> = world.machine.under_way(worker).copied().collect();
    assert_eq!(under_way, [answered, runs]);
}
