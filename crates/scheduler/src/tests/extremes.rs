//! Shortages, drains with stopped workers, quiesced pools, and the longest durations.

use std::time::Duration;

use super::world::{MILLI, World, settings, started};
use crate::{Constraints, Event, KillCause, Settings, Shutdown, TaskEnd};

/// Makes every start fail at once for this time. Later starts succeed.
fn shortage(workers: usize, time: Duration) -> (World, Duration) {
    let mut world = World::new(settings(workers));
    let begin = world.now;
    for _ in 0..50 {
        world.submit(0);
    }
    while world.now < begin.saturating_add(time) && !world.broke {
        for slot in world.slots() {
            world.fail_start(slot, false);
        }
        if world.workers.is_empty() && !world.broke {
            assert!(world.next_tick(), "no start is retried");
        }
    }
    let took = world.now.saturating_since(begin);
    (world, took)
}

#[test]
fn a_short_shortage_breaks_no_pool_of_any_size() {
    for workers in [1, 4, 8, 64] {
        let (mut world, _) = shortage(workers, 20 * MILLI);
        assert!(!world.broke, "{workers} workers");
        world.run_dry();
        assert_eq!(world.outcomes.len(), 50);
    }
}

#[test]
fn a_long_shortage_breaks_pools_of_every_size_equally_soon() {
    for workers in [1, 4, 8, 64] {
        let (world, took) = shortage(workers, Duration::from_secs(60));
        assert!(world.broke);
        assert_eq!(took, 70 * MILLI, "{workers} workers");
    }
}

#[test]
fn a_worker_that_was_busy_at_a_quiesce_stops_afterwards() {
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
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
    assert!(world.workers.is_empty(), "a process is never stopped");
    world.submit(0);
    assert_eq!(world.workers.len(), 1, "work wakes the pool");
    world.run_dry();
    assert_eq!(world.workers.len(), 1);
}

#[test]
fn a_worker_that_has_only_to_skip_is_idle_at_a_quiesce() {
    let mut world = started(settings(1));
    // Brief tasks are prefetched.
    for _ in 0..300 {
        world.submit(0);
        world.begin(0);
        world.finish(0, Duration::from_micros(1));
    }
    let first = world.submit(0);
    let revoked = world.submit(0);
    world.begin(0);
    world.cancel(revoked);
    world.finish(0, Duration::from_micros(1));
    assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
    world.event(Event::Quiesce);
    assert!(world.scheduler.is_losing_workers(), "a quiesce waits for it");
    world.run_dry();
    assert!(world.workers.is_empty());
}

#[test]
fn a_worker_that_is_being_started_is_stopped_at_a_quiesce() {
    let mut world = World::new(settings(1));
    let task = world.submit(0);
    world.cancel(task);
    world.event(Event::Quiesce);
    assert!(world.scheduler.is_losing_workers(), "a quiesce waits for it");
    world.run_dry();
    assert!(world.workers.is_empty());
}

/// Drains a pool whose tasks stop their own workers by a signal.
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
    let took = world.now.saturating_since(begin);
    (world, took)
}

#[test]
fn a_task_that_stops_its_worker_is_not_retried_by_a_drain() {
    let (world, took) = drain_of_stoppers(1, 5);
    assert_eq!(world.outcome(1), Some(TaskEnd::Killed(KillCause::Stopped)));
    assert_eq!(world.spawns, 1);
    assert!(took <= 300 * MILLI, "{took:?}");
}

#[test]
fn a_drain_finds_every_stopped_worker_as_fast_as_the_first() {
    let (_, took) = drain_of_stoppers(10, 0);
    assert!(took <= 10 * 250 * MILLI, "{took:?}");
}

#[test]
fn the_report_counts_workers_that_a_drain_kills() {
    let (world, _) = drain_of_stoppers(1, 0);
    let report = world.scheduler.report();
    assert_eq!((report.killed, report.failed, report.workers_killed), (1, 0, 1));
    // A worker killed by a deadline during a drain has not died by itself either.
    let mut world = started(settings(1));
    world.submit_with(0, Constraints { hard_limit: Some(MILLI), ..Constraints::default() });
    world.begin(0);
    world.shutdown(Shutdown::Drain, None);
    world.wait(MILLI);
    world.obey(0);
    let report = world.scheduler.report();
    assert_eq!((report.killed, report.failed, report.workers_killed), (1, 0, 1));
}

#[test]
fn the_longest_durations_never_overflow() {
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
            let all = Constraints {
                queue_limit: Some(max),
                hard_limit: Some(max),
                ..Constraints::default()
            };
            world.submit_with(1, all);
            for _ in 0..300 {
                world.submit(0);
                world.begin(1);
                world.finish(1, max);
            }
            world.event(Event::Resize { workers: 1 });
            world.scheduler.handle(
                world.now,
                Event::Shutdown { mode, timeout },
                &mut crate::Outbox::default(),
            );
            let mut outbox = crate::Outbox::default();
            let again = Event::Shutdown { mode: Shutdown::Terminate, timeout: Some(max) };
            world.scheduler.handle(world.now, again, &mut outbox);
            world.scheduler.handle(world.now.saturating_add(2 * MILLI), Event::Tick, &mut outbox);
        }
    }
}

/// The world checks that no worker with a chunk is killed "at once".
#[test]
fn a_chunk_beside_an_unread_outcome_ends_with_its_process() {
    for chunk_is_first in [true, false] {
        let mut world = started(settings(1));
        world.get_used_to(Duration::ZERO);
        let runs = if chunk_is_first {
            world.submit_items(1, 0, None);
            world.submit(0)
        } else {
            world.submit(0);
            world.submit_items(1, 0, None)
        };
        world.begin(0);
        world.run_ahead(0);
        world.event(Event::Kill(world.places[&runs]));
        assert!(world.workers[&0].doomed);
    }
}
