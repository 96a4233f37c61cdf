//! Attempts after a failure and after a pause: one promise per test.

use std::time::Duration;

use super::fake_worker::may_fail;
use super::world::{MILLI, World, settings, started};
use crate::{Constraints, Event, Failure, KillCause, Retry, Settings, Shutdown, TaskEnd};

const PAUSE: Duration = Duration::from_millis(100);

/// Constraints of a task that is retried for panics, after pauses of 100, 200, … ms.
fn panics() -> Constraints {
    let retry = Retry::new().delay(PAUSE);
    Constraints { retry, retries_panics: true, ..Constraints::default() }
}

/// Makes the worker run its next task, which ends in this way.
fn run(world: &mut World, failure: impl Into<Option<Failure>>) {
    world.failure = failure.into();
    world.begin(0);
    world.finish(0, MILLI);
}

#[test]
fn a_failure_is_retried_until_no_attempt_is_left() {
    let mut world = started(settings(1));
    let id = world.submit_with(2, panics());
    for pause in [PAUSE, 2 * PAUSE] {
        run(&mut world, Failure::Panic);
        world.wait(pause.saturating_sub(MILLI));
        world.begin(0);
        assert!(world.workers[&0].frames.is_empty(), "it starts before its pause is over");
        world.wait(MILLI);
    }
    assert_eq!(world.outcome(id), None);
    run(&mut world, Failure::Panic);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
    assert_eq!((world.scheduler.counters().retried, world.start_order), (2, vec![id; 3]));
}

#[test]
fn a_failure_that_was_not_named_is_the_outcome() {
    let mut world = started(settings(1));
    for (constraints, failure) in [
        (panics(), Failure::Error),
        (Constraints { retries_errors: true, ..Constraints::default() }, Failure::Panic),
        (Constraints::default(), Failure::Error),
    ] {
        let id = world.submit_with(5, constraints);
        run(&mut world, failure);
        assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
    }
}

#[test]
fn others_run_during_a_pause() {
    // Nothing is prefetched, so the order is that of the queue.
    let mut world = started(Settings { credit: 1, ..settings(1) });
    let retried = world.submit_with(1, panics());
    run(&mut world, Failure::Panic);
    let other = world.submit(0);
    world.begin(0);
    let later = world.submit(0);
    world.wait(PAUSE);
    world.failure = None;
    world.finish(0, PAUSE);
    world.run_dry();
    assert_eq!(world.start_order, [retried, other, retried, later]);
}

#[test]
fn a_death_is_followed_by_a_pause_too() {
    let mut world = started(settings(1));
    let id = world.submit_with(1, panics());
    world.begin(0);
    world.crash(0);
    world.start(0);
    assert_eq!(world.scheduler.backlog(), 1);
    assert!(world.workers[&0].frames.is_empty());
    world.wait(PAUSE);
    run(&mut world, None);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}

#[test]
fn paused_tasks_count_in_the_queue() {
    let mut world = started(Settings { queue_limit: 1, ..settings(1) });
    world.submit_with(1, panics());
    run(&mut world, Failure::Panic);
    assert!(!world.scheduler.has_room());
    world.wait(PAUSE);
    assert!(world.scheduler.has_room());
}

#[test]
fn a_paused_task_ends_with_a_cancel_a_kill_and_the_pool() {
    let paused = || {
        let mut world = started(settings(1));
        let id = world.submit_with(1, panics());
        run(&mut world, Failure::Panic);
        assert_eq!(world.outcome(id), None);
        (world, id)
    };
    let (mut world, id) = paused();
    world.cancel(id);
    assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    let (mut world, id) = paused();
    world.kill(id);
    assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    let (mut world, id) = paused();
    world.event(Event::Break { reason: "made up".into() });
    assert_eq!(world.outcome(id), Some(TaskEnd::Broken));
    let (mut world, id) = paused();
    world.shutdown(Shutdown::CancelPending, None);
    assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    let (mut world, id) = paused();
    world.shutdown(Shutdown::Drain, None);
    world.wait(PAUSE);
    assert_eq!(world.outcome(id), None);
    run(&mut world, Failure::Panic);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported), "a drain waits for the last attempt");
}

/// Submits five items, of which the worker finishes three; the first and the third fail. Their ids
/// are such that [`may_fail`] says so.
fn submit_failing_items(world: &mut World) -> u64 {
    while world.next_id % 3 != 2 {
        world.submit(0);
        world.run_dry();
    }
    let first = world.submit_items(5, 1, panics());
    assert_eq!([0, 1, 2].map(|index| may_fail(first + index)), [true, false, true]);
    world.begin(0);
    for _ in 0..6 {
        world.advance_item(0);
    }
    world.failure = Some(Failure::Panic);
    first
}

#[test]
fn failed_items_run_again_and_the_others_end() {
    for dies in [false, true] {
        let mut world = started(settings(1));
        let first = submit_failing_items(&mut world);
        if dies {
            world.crash(0);
            world.start(0);
        } else {
            world.finish(0, MILLI);
        }
        let before = world.start_order.len();
        world.failure = None;
        world.run_dry();
        let ends: Vec<_> = (first..first + 5).map(|id| world.outcome(id)).collect();
        let have_ended: Vec<_> = ends.iter().map(Option::is_some).collect();
        assert_eq!(have_ended, [false, true, false, true, true]);
        assert_eq!(world.start_order[before], first + 3, "others run during the pause");
        assert!(!world.start_order[before..].contains(&(first + 2)), "before its pause is over");
        world.wait(PAUSE);
        world.run_dry();
        assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
        assert_eq!(world.outcome(first + 2), Some(TaskEnd::Reported));
        assert_eq!(world.scheduler.counters().retried, 2);
    }
}

#[test]
fn items_that_fail_one_after_the_other_stay_together() {
    let mut world = started(settings(1));
    while world.next_id % 3 != 1 {
        world.submit(0);
        world.run_dry();
    }
    let first = world.submit_items(2, 1, panics());
    for _ in 0..2 {
        world.failure = Some(Failure::Panic);
        world.begin(0);
        world.finish_items(0);
        world.finish(0, MILLI);
        world.wait(PAUSE);
    }
    assert_eq!(world.outcome(first + 1), Some(TaskEnd::Reported));
    assert_eq!(world.start_order.iter().filter(|id| **id >= first).count(), 2);
    assert_eq!(world.scheduler.counters().retried, 2);
}

#[test]
fn failed_items_of_a_cancelled_chunk_do_not_run_again() {
    let mut world = started(settings(1));
    let first = submit_failing_items(&mut world);
    world.cancel(first);
    world.finish(0, MILLI);
    let ends: Vec<_> = (first..first + 5).map(|id| world.outcome(id)).collect();
    let (reported, cancelled) = (Some(TaskEnd::Reported), Some(TaskEnd::Cancelled));
    assert_eq!(ends, [reported, reported, reported, cancelled, cancelled]);
}

#[test]
fn a_task_whose_call_was_denied_does_not_run_again() {
    let mut world = started(settings(1));
    let id = world.submit(5);
    world.begin(0);
    world.crash_for(0, Some(KillCause::Denied));
    assert_eq!(world.outcome(id), Some(TaskEnd::Died));
    assert_eq!(world.scheduler.counters().failed_by_death, 1);
}

#[test]
fn a_failure_in_a_pool_that_cancels_is_the_outcome() {
    let mut world = started(settings(1));
    let id = world.submit_with(5, panics());
    world.failure = Some(Failure::Panic);
    world.begin(0);
    world.shutdown(Shutdown::CancelPending, None);
    world.finish(0, MILLI);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}
