//! Priorities, deadlines and kills: one promise a test.

use std::time::Duration;

use super::world::{World, settings};
use crate::machine::{End, Event, KillCause, Settings, Terms};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn started(settings: Settings) -> World {
    let mut world = World::new(settings);
    world.event(Event::WarmUp);
    for slot in world.slots() {
        world.start(slot);
    }
    world
}

fn priority(priority: i32) -> Terms {
    Terms { priority, ..Terms::default() }
}

fn run_limit(limit: Duration) -> Terms {
    Terms { run_limit: Some(limit), ..Terms::default() }
}

fn queue_limit(limit: Duration) -> Terms {
    Terms { queue_limit: Some(limit), ..Terms::default() }
}

#[test]
fn higher_priorities_begin_first_and_within_one_the_oldest() {
    let mut world = started(settings(1));
    let running = world.submit(0);
    let low: Vec<u64> = (0..2).map(|_| world.submit_with(0, priority(-1))).collect();
    let plain: Vec<u64> = (0..2).map(|_| world.submit(0)).collect();
    let high: Vec<u64> = (0..2).map(|_| world.submit_with(0, priority(5))).collect();
    world.run_dry();
    let expected: Vec<u64> = [running].into_iter().chain(high).chain(plain).chain(low).collect();
    assert_eq!(world.begun_order, expected);
}

#[test]
fn a_task_that_has_waited_long_enough_goes_before_higher_ones() {
    let mut world = started(settings(1));
    let running = world.submit(0);
    world.begin(0);
    let old = world.submit(0);
    world.wait(21 * SECOND);
    let new = world.submit_with(0, priority(2));
    let newer = world.submit_with(0, priority(3));
    world.finish(0, SECOND);
    world.run_dry();
    assert_eq!(world.begun_order, [running, newer, old, new]);
}

#[test]
fn a_task_that_waits_too_long_never_runs() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    let id = world.submit_with(3, queue_limit(10 * MILLI));
    world.wait(9 * MILLI);
    assert_eq!(world.outcome(id), None);
    world.wait(MILLI);
    assert_eq!(world.outcome(id), Some(End::Expired));
    world.run_dry();
    assert!(!world.begun_order.contains(&id));
}

#[test]
fn a_prefetched_task_that_waits_too_long_never_runs() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    world.finish(0, MILLI);
    world.run_dry();
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    world.submit(0);
    world.begin(0);
    let id = world.submit_with(0, queue_limit(10 * MILLI));
    assert_eq!(world.workers[&0].frames.len(), 2, "it was prefetched");
    world.wait(10 * MILLI);
    assert_eq!(world.outcome(id), Some(End::Expired));
}

#[test]
fn a_task_that_cannot_be_taken_back_has_begun_whatever_its_table_says() {
    let mut world = started(settings(1));
    let both = Terms { queue_limit: Some(10 * MILLI), ..run_limit(10 * MILLI) };
    let id = world.submit_with(0, both);
    world.begin(0);
    world.workers.get_mut(&0).unwrap().garbled = true;
    while !world.workers[&0].doomed {
        assert!(world.next_tick());
    }
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Killed(KillCause::Deadline)));
}

#[test]
fn a_table_that_was_written_over_defeats_neither_deadline_nor_kill() {
    for killed in [false, true] {
        let mut world = started(settings(1));
        world.get_used_to(Duration::ZERO);
        let guilty = world.submit_with(2, run_limit(10 * MILLI));
        world.begin(0);
        let behind: Vec<u64> = (0..5).map(|_| world.submit(0)).collect();
        world.workers.get_mut(&0).unwrap().garbled = true;
        if killed {
            world.kill(guilty);
        } else {
            // Its time counts from the first look, as nobody can read when it began.
            world.wait(20 * MILLI);
        }
        assert_eq!(world.workers[&0].cause, Some(KillCause::Protocol));
        world.obey(0);
        world.run_dry();
        for id in behind {
            let end = world.outcome(id);
            assert_eq!(end, Some(End::Killed(KillCause::Protocol)), "it may have begun");
        }
        let end = if killed { End::Killed(KillCause::Protocol) } else { End::Reported };
        assert_eq!(world.outcome(guilty), Some(end), "it is retried unless it was killed");
    }
}

#[test]
fn a_worker_that_says_that_all_its_tasks_have_begun_is_believed_for_a_second() {
    let mut world = started(settings(1));
    world.get_used_to(Duration::ZERO);
    let guilty = world.submit_with(0, run_limit(10 * MILLI));
    world.begin(0);
    let behind = world.submit(0);
    world.workers.get_mut(&0).unwrap().lies = true;
    world.wait(Duration::from_secs(1));
    assert!(!world.workers[&0].doomed, "its answer may be on its way");
    world.wait(10 * MILLI);
    assert_eq!(world.workers[&0].cause, Some(KillCause::Protocol));
    world.obey(0);
    world.run_dry();
    assert_eq!(world.outcome(guilty), Some(End::Killed(KillCause::Protocol)));
    assert_eq!(world.outcome(behind), Some(End::Reported));
}

#[test]
fn the_time_to_run_counts_from_the_begin() {
    let mut world = started(settings(1));
    let id = world.submit_with(0, run_limit(10 * MILLI));
    world.wait(100 * MILLI);
    assert!(!world.workers[&0].doomed, "it has not begun");
    world.begin(0);
    world.wait(9 * MILLI);
    assert!(!world.workers[&0].doomed, "it may still run");
    world.wait(MILLI);
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Killed(KillCause::Deadline)));
    assert_eq!(world.spawns, 2, "the worker is replaced");
}

#[test]
fn nobody_looks_at_a_task_that_cannot_have_begun() {
    let mut world = started(settings(1));
    world.machine.usual_run = MILLI;
    let long = world.submit(0);
    let behind = world.submit_with(0, run_limit(MILLI));
    world.begin(0);
    assert_eq!(world.workers[&0].frames.len(), 2);
    assert_eq!(world.machine.next_deadline(), None);
    world.wait(SECOND);
    world.run_ahead(0);
    world.hear(0);
    world.wait(MILLI);
    world.obey(0);
    let ends = [long, behind].map(|id| world.outcome(id));
    assert_eq!(ends, [Some(End::Reported), Some(End::Killed(KillCause::Deadline))]);
}

#[test]
fn a_deadline_is_kept_also_when_what_waits_behind_is_given_up_in_the_same_moment() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let late = world.submit_with(0, run_limit(10 * MILLI));
    let behind = world.submit_with(0, queue_limit(10 * MILLI));
    world.begin(0);
    assert_eq!(world.workers[&0].frames.len(), 2);
    world.wait(10 * MILLI);
    assert_eq!(world.outcome(behind), Some(End::Expired));
    world.obey(0);
    assert_eq!(world.outcome(late), Some(End::Killed(KillCause::Deadline)));
}

#[test]
fn a_result_that_was_complete_before_the_kill_counts() {
    let mut world = started(settings(1));
    let id = world.submit_with(0, run_limit(10 * MILLI));
    world.begin(0);
    world.wait(10 * MILLI);
    world.finish(0, 10 * MILLI);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Reported));
}

#[test]
fn a_section_that_lasts_too_long_ends_its_task_and_one_that_has_ended_does_not() {
    let mut world = started(settings(1));
    let id = world.submit(0);
    world.begin(0);
    world.begin_section(0, 10 * MILLI);
    world.wait(9 * MILLI);
    // In its place, and the machine need not be told.
    world.begin_section(0, 6 * MILLI);
    world.wait(5 * MILLI);
    assert!(!world.workers[&0].doomed);
    world.wait(MILLI);
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Killed(KillCause::Section)));
}

#[test]
fn a_section_of_a_task_that_has_ended_harms_nobody() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    world.begin_section(0, 10 * MILLI);
    world.finish(0, MILLI);
    let next = world.submit(0);
    world.begin(0);
    world.wait(SECOND);
    world.run_dry();
    assert_eq!(world.outcome(next), Some(End::Reported));
}

#[test]
fn a_kill_takes_nothing_with_it_that_was_prefetched_behind() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let id = world.submit(0);
    let behind = world.submit(0);
    world.begin(0);
    assert_eq!(world.workers[&0].frames.len(), 2);
    world.kill(id);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Killed(KillCause::Asked)));
    world.run_dry();
    assert_eq!(world.outcome(behind), Some(End::Reported));
}

#[test]
fn nobody_is_killed_when_the_next_task_has_begun() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let (id, next) = (world.submit(0), world.submit(0));
    world.begin(0);
    // The worker has answered, the machine has not heard of it, and the next task runs already.
    world.run_ahead(0);
    world.event(Event::Kill(world.places[&id]));
    assert!(!world.workers[&0].doomed);
    world.run_dry();
    assert_eq!([id, next].map(|id| world.outcome(id)), [Some(End::Reported); 2]);
}

#[test]
fn a_killed_task_is_not_retried_and_one_after_a_deadline_is() {
    let mut world = started(settings(1));
    let killed = world.submit(5);
    world.begin(0);
    world.kill(killed);
    world.obey(0);
    assert_eq!(world.outcome(killed), Some(End::Killed(KillCause::Asked)));
    world.run_dry();
    let late = world.submit_with(1, run_limit(10 * MILLI));
    world.begin(0);
    world.wait(10 * MILLI);
    world.obey(0);
    assert_eq!(world.outcome(late), None, "it runs again");
    world.run_dry();
    assert_eq!(world.outcome(late), Some(End::Reported));
}

#[test]
fn a_task_that_is_killed_while_its_worker_dies_already_does_not_run_again() {
    let mut world = started(settings(1));
    let id = world.submit(5);
    world.begin(0);
    let worker = world.workers[&0].id;
    world.event(Event::Misbehaved { worker });
    world.kill(id);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(End::Killed(KillCause::Protocol)));
}

#[test]
fn a_task_that_waits_is_killed_without_harm() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    let id = world.submit(0);
    world.kill(id);
    assert_eq!(world.outcome(id), Some(End::Cancelled));
    assert!(!world.workers[&0].doomed);
}

#[test]
fn a_task_under_which_too_many_workers_died_is_given_up() {
    let mut world = started(Settings { quarantine: 3, ..settings(1) });
    let id = world.submit(100);
    for _ in 0..3 {
        assert_eq!(world.outcome(id), None);
        world.start(0);
        world.begin(0);
        world.crash(0);
    }
    assert_eq!(world.outcome(id), Some(End::Quarantined));
}
