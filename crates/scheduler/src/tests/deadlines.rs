//! Priorities, deadlines and kills: one promise per test.

use std::time::Duration;

use super::fake_worker::FakePhase;
use super::world::{MILLI, settings, started};
use crate::{Constraints, Event, KillCause, Settings, TaskEnd};

const SECOND: Duration = Duration::from_secs(1);

fn priority(priority: i32) -> Constraints {
    Constraints { priority, ..Constraints::default() }
}

fn hard_limit(limit: Duration) -> Constraints {
    Constraints { hard_limit: Some(limit), ..Constraints::default() }
}

fn queue_limit(limit: Duration) -> Constraints {
    Constraints { queue_limit: Some(limit), ..Constraints::default() }
}

#[test]
fn higher_priorities_start_first_and_equal_ones_in_order() {
    let mut world = started(settings(1));
    let running = world.submit(0);
    let low: Vec<u64> = (0..2).map(|_| world.submit_with(0, priority(-1))).collect();
    let plain: Vec<u64> = (0..2).map(|_| world.submit(0)).collect();
    let high: Vec<u64> = (0..2).map(|_| world.submit_with(0, priority(5))).collect();
    world.run_dry();
    let expected: Vec<u64> = [running].into_iter().chain(high).chain(plain).chain(low).collect();
    assert_eq!(world.start_order, expected);
}

#[test]
fn a_task_that_has_waited_long_goes_before_higher_priorities() {
    let mut world = started(settings(1));
    let running = world.submit(0);
    world.begin(0);
    let old = world.submit(0);
    world.wait(21 * SECOND);
    let new = world.submit_with(0, priority(2));
    let newer = world.submit_with(0, priority(3));
    world.finish(0, SECOND);
    world.run_dry();
    assert_eq!(world.start_order, [running, newer, old, new]);
}

#[test]
fn a_task_that_misses_its_queue_deadline_never_runs() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    let id = world.submit_with(3, queue_limit(10 * MILLI));
    world.wait(9 * MILLI);
    assert_eq!(world.outcome(id), None);
    world.wait(MILLI);
    assert_eq!(world.outcome(id), Some(TaskEnd::Expired));
    world.run_dry();
    assert!(!world.start_order.contains(&id));
}

#[test]
fn a_late_tick_starts_no_task_after_its_queue_deadline() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    let id = world.submit_with(0, queue_limit(10 * MILLI));
    let last = world.submit(0);
    // The worker finishes before the driver has noticed that the time is up.
    world.now = world.now.saturating_add(20 * MILLI);
    world.finish(0, 20 * MILLI);
    assert_eq!(world.outcome(id), Some(TaskEnd::Expired));
    world.run_dry();
    assert_eq!(world.start_order.last(), Some(&last));
    assert!(!world.start_order.contains(&id));
}

#[test]
fn a_prefetched_task_can_miss_its_queue_deadline() {
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
    assert_eq!(world.outcome(id), Some(TaskEnd::Expired));
}

#[test]
fn a_task_that_cannot_be_revoked_counts_as_started() {
    let mut world = started(settings(1));
    let both = Constraints { queue_limit: Some(10 * MILLI), ..hard_limit(10 * MILLI) };
    let id = world.submit_with(0, both);
    world.begin(0);
    world.workers.get_mut(&0).unwrap().garbled = true;
    while !world.workers[&0].doomed {
        assert!(world.next_tick());
    }
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Deadline)));
}

#[test]
fn an_overwritten_table_defeats_neither_deadline_nor_kill() {
    for killed in [false, true] {
        let mut world = started(settings(1));
        world.get_used_to(Duration::ZERO);
        let guilty = world.submit_with(2, hard_limit(10 * MILLI));
        world.begin(0);
        let behind: Vec<u64> = (0..5).map(|_| world.submit(0)).collect();
        world.workers.get_mut(&0).unwrap().garbled = true;
        if killed {
            world.kill(guilty);
        } else {
            // Its time counts from the first check, because its start time cannot be read.
            world.wait(20 * MILLI);
        }
        assert_eq!(world.workers[&0].cause, Some(KillCause::Protocol));
        world.obey(0);
        world.run_dry();
        for id in behind {
            let end = world.outcome(id);
            assert_eq!(end, Some(TaskEnd::Killed(KillCause::Protocol)), "it may have started");
        }
        let end = if killed { TaskEnd::Killed(KillCause::Protocol) } else { TaskEnd::Reported };
        assert_eq!(world.outcome(guilty), Some(end), "it is retried unless it was killed");
    }
}

#[test]
fn a_worker_that_lies_about_started_tasks_is_killed_in_a_second() {
    let mut world = started(settings(1));
    world.get_used_to(Duration::ZERO);
    let guilty = world.submit_with(0, hard_limit(10 * MILLI));
    world.begin(0);
    let behind = world.submit(0);
    world.workers.get_mut(&0).unwrap().lies = true;
    world.wait(Duration::from_secs(1));
    assert!(!world.workers[&0].doomed, "its outcome may still arrive");
    world.wait(10 * MILLI);
    assert_eq!(world.workers[&0].cause, Some(KillCause::Protocol));
    world.obey(0);
    world.run_dry();
    assert_eq!(world.outcome(guilty), Some(TaskEnd::Killed(KillCause::Protocol)));
    assert_eq!(world.outcome(behind), Some(TaskEnd::Reported));
}

#[test]
fn the_hard_deadline_counts_from_the_start_of_the_task() {
    let mut world = started(settings(1));
    let id = world.submit_with(0, hard_limit(10 * MILLI));
    world.wait(100 * MILLI);
    assert!(!world.workers[&0].doomed, "it has not started");
    world.begin(0);
    world.wait(9 * MILLI);
    assert!(!world.workers[&0].doomed, "it may still run");
    world.wait(MILLI);
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Deadline)));
    assert_eq!(world.spawns, 2, "the worker is replaced");
}

#[test]
fn a_task_that_cannot_have_started_is_not_observed() {
    let mut world = started(settings(1));
    world.scheduler.run_times.set_usual(MILLI);
    let long = world.submit(0);
    let behind = world.submit_with(0, hard_limit(MILLI));
    world.begin(0);
    assert_eq!(world.workers[&0].frames.len(), 2);
    assert_eq!(world.scheduler.next_deadline(), None);
    world.wait(SECOND);
    world.run_ahead(0);
    world.hear(0);
    world.wait(MILLI);
    world.obey(0);
    let ends = [long, behind].map(|id| world.outcome(id));
    assert_eq!(ends, [Some(TaskEnd::Reported), Some(TaskEnd::Killed(KillCause::Deadline))]);
}

#[test]
fn a_deadline_holds_while_a_prefetched_task_expires() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let late = world.submit_with(0, hard_limit(10 * MILLI));
    let behind = world.submit_with(0, queue_limit(10 * MILLI));
    world.begin(0);
    assert_eq!(world.workers[&0].frames.len(), 2);
    world.wait(10 * MILLI);
    assert_eq!(world.outcome(behind), Some(TaskEnd::Expired));
    world.obey(0);
    assert_eq!(world.outcome(late), Some(TaskEnd::Killed(KillCause::Deadline)));
}

#[test]
fn only_a_section_that_is_still_open_can_end_its_task() {
    let mut world = started(settings(1));
    let id = world.submit(0);
    world.begin(0);
    world.begin_section(0, 10 * MILLI);
    world.wait(9 * MILLI);
    // It replaces the section, and the scheduler need not be notified.
    world.begin_section(0, 6 * MILLI);
    world.wait(5 * MILLI);
    assert!(!world.workers[&0].doomed);
    world.wait(MILLI);
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Section)));
}

#[test]
fn a_section_of_a_finished_task_harms_no_other_task() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    world.begin_section(0, 10 * MILLI);
    world.finish(0, MILLI);
    let next = world.submit(0);
    world.begin(0);
    world.wait(SECOND);
    world.run_dry();
    assert_eq!(world.outcome(next), Some(TaskEnd::Reported));
}

#[test]
fn a_kill_harms_no_prefetched_task() {
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
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Asked)));
    world.run_dry();
    assert_eq!(world.outcome(behind), Some(TaskEnd::Reported));
}

#[test]
fn no_worker_is_killed_when_the_next_task_has_started() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let (id, next) = (world.submit(0), world.submit(0));
    world.begin(0);
    // The worker has written the outcome, the scheduler has not read it, and the next task already
    // runs.
    world.run_ahead(0);
    world.event(Event::Kill(world.places[&id]));
    assert!(!world.workers[&0].doomed);
    world.run_dry();
    assert_eq!([id, next].map(|id| world.outcome(id)), [Some(TaskEnd::Reported); 2]);
}

#[test]
fn a_killed_task_is_not_retried_but_a_late_one_is() {
    let mut world = started(settings(1));
    let killed = world.submit(5);
    world.begin(0);
    world.kill(killed);
    world.obey(0);
    assert_eq!(world.outcome(killed), Some(TaskEnd::Killed(KillCause::Asked)));
    world.run_dry();
    let late = world.submit_with(1, hard_limit(10 * MILLI));
    world.begin(0);
    world.wait(10 * MILLI);
    world.obey(0);
    assert_eq!(world.outcome(late), None, "it runs again");
    world.run_dry();
    assert_eq!(world.outcome(late), Some(TaskEnd::Reported));
}

#[test]
fn a_task_killed_while_its_worker_dies_is_not_retried() {
    let mut world = started(settings(1));
    let id = world.submit(5);
    world.begin(0);
    let worker = world.workers[&0].id;
    world.event(Event::Misbehaved { worker });
    world.kill(id);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Protocol)));
}

#[test]
fn killing_a_waiting_task_harms_no_worker() {
    let mut world = started(settings(1));
    world.submit(0);
    world.begin(0);
    let id = world.submit(0);
    world.kill(id);
    assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    assert!(!world.workers[&0].doomed);
}

#[test]
fn a_task_that_crashes_too_many_workers_is_quarantined() {
    let mut world = started(Settings { quarantine: 3, ..settings(1) });
    let id = world.submit(100);
    for _ in 0..3 {
        assert_eq!(world.outcome(id), None);
        world.start(0);
        world.begin(0);
        world.crash(0);
    }
    assert_eq!(world.outcome(id), Some(TaskEnd::Quarantined));
}

#[test]
fn a_section_ends_its_task_beside_a_check_of_another() {
    let mut world = started(settings(1));
    for _ in 0..40 {
        world.submit(0);
        world.run_dry();
    }
    let (first, second) = (world.submit(0), world.submit(0));
    world.begin(0);
    world.begin_section(0, 10 * MILLI);
    // The outcome of the first task is not read yet.
    world.run_ahead(0);
    world.begin_section(0, 10 * MILLI);
    world.wait(10 * MILLI);
    world.hear(0);
    assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
    world.wait(Duration::from_secs(60));
    assert!(world.workers[&0].doomed, "next deadline: {:?}", world.scheduler.next_deadline());
    world.obey(0);
    assert_eq!(world.outcome(second), Some(TaskEnd::Killed(KillCause::Section)));
}

#[test]
fn a_check_that_a_worker_relies_on_comes_after_others() {
    for (queue_limit, hard_limit) in [(Some(5 * MILLI), None), (None, Some(1000 * MILLI))] {
        let mut world = started(settings(1));
        let constraints = Constraints { queue_limit, hard_limit, ..Constraints::default() };
        let task = world.submit_with(0, constraints);
        world.begin(0);
        world.begin_section(0, 10 * MILLI);
        world.end_section(0);
        world.wait(6 * MILLI);
        // The scheduler is not notified, as it checks in 4 ms.
        world.begin_section(0, 10 * MILLI);
        world.wait(20 * MILLI);
        assert!(world.workers[&0].doomed, "next deadline: {:?}", world.scheduler.next_deadline());
        world.obey(0);
        assert_eq!(world.outcome(task), Some(TaskEnd::Killed(KillCause::Section)));
    }
}

#[test]
fn returned_items_do_not_expire_when_a_section_would_have_ended() {
    let mut world = started(settings(1));
    let constraints = Constraints { queue_limit: Some(30 * MILLI), ..Constraints::default() };
    let first = world.submit_items(3, 0, constraints);
    world.begin(0);
    world.advance_item(0);
    world.begin_section(0, 10 * MILLI);
    // Another task takes the worker, so that the items that it returns wait.
    world.submit_with(0, Constraints { priority: 5, ..Constraints::default() });
    world.finish(0, Duration::ZERO);
    world.wait(20 * MILLI);
    assert_eq!(world.outcome(first + 1), None);
    world.run_dry();
    assert_eq!(world.outcome(first + 1), Some(TaskEnd::Reported));
}

#[test]
fn a_task_that_exceeds_a_limit_is_killed_and_others_go_on() {
    for limited in [
        Constraints { cpu_limit: Some(SECOND), ..Constraints::default() },
        Constraints { memory_limit: Some(999_999_999), ..Constraints::default() },
    ] {
        let mut world = started(settings(1));
        let first = world.submit(0);
        let id = world.submit_with(0, limited);
        let behind = world.submit(0);
        world.begin(0);
        world.wait(3 * SECOND);
        world.finish(0, SECOND);
        world.begin(0);
        world.wait(999 * MILLI);
        assert_eq!(world.outcome(id), None, "not early");
        // Looks at memory are a millisecond apart.
        world.wait(2 * MILLI);
        world.obey(0);
        world.start(0);
        world.run_dry();
        assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Limit)));
        for other in [first, behind] {
            assert_eq!(world.outcome(other), Some(TaskEnd::Reported));
        }
    }
}

#[test]
fn a_limited_task_that_is_retried_gets_its_whole_limit_again() {
    let mut world = started(settings(1));
    let limited = Constraints { cpu_limit: Some(SECOND), ..Constraints::default() };
    let id = world.submit_with(1, limited);
    world.begin(0);
    world.wait(SECOND);
    world.obey(0);
    world.start(0);
    world.begin(0);
    world.wait(999 * MILLI);
    assert_eq!(world.outcome(id), None);
    world.finish(0, SECOND);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}

#[test]
fn a_task_that_must_be_alone_has_its_worker_for_itself() {
    let mut world = started(settings(1));
    let alone = || Constraints { alone: true, ..Constraints::default() };
    let short: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    let id = world.submit_with(0, alone());
    let after = world.submit(0);
    for _ in short {
        assert!(!world.workers[&0].frames.iter().any(|frame| frame.id.get() == id));
        world.begin(0);
        world.finish(0, MILLI);
    }
    assert_eq!(world.workers[&0].frames.len(), 1);
    assert_eq!(world.workers[&0].frames[0].id.get(), id);
    world.run_dry();
    assert_eq!(world.outcome(after), Some(TaskEnd::Reported));
}

#[test]
fn a_task_behind_another_is_not_taken_to_have_begun() {
    let mut world = started(Settings { trusts_workers: false, ..settings(1) });
    let first = world.submit(0);
    let second =
        world.submit_with(0, Constraints { queue_limit: Some(30 * SECOND), ..hard_limit(SECOND) });
    world.begin(0);
    world.wait(20 * SECOND);
    world.finish(0, SECOND);
    world.begin(0);
    world.finish(0, MILLI);
    for task in [first, second] {
        assert_eq!(world.outcome(task), Some(TaskEnd::Reported));
    }
}

#[test]
fn a_distrusted_worker_that_skips_nothing_is_ended() {
    for trusts_workers in [false, true] {
        let mut world = started(Settings { trusts_workers, ..settings(1) });
        let limited = Constraints { queue_limit: Some(SECOND), ..Constraints::default() };
        let ids = [(); 3].map(|()| world.submit_with(0, limited.clone()));
        world.wait(1900 * MILLI);
        for id in ids {
            assert_eq!(world.outcome(id), Some(TaskEnd::Expired));
        }
        world.obey(0);
        assert_eq!(world.workers[&0].phase, FakePhase::Ready, "not early");
        world.wait(200 * MILLI);
        world.obey(0);
        assert_eq!(world.workers[&0].phase == FakePhase::Ready, trusts_workers);
        if !trusts_workers {
            world.start(0);
        }
        let after = world.submit(0);
        world.run_dry();
        assert_eq!(world.outcome(after), Some(TaskEnd::Reported));
    }
}

#[test]
fn a_value_that_comes_after_the_kill_does_not_count() {
    for is_asked in [false, true] {
        let mut world = started(settings(1));
        let id = world.submit_with(0, hard_limit(10 * MILLI));
        world.begin(0);
        if is_asked {
            world.kill(id);
        } else {
            world.wait(10 * MILLI);
        }
        world.finish(0, MILLI);
        assert_eq!(world.outcome(id), None);
        world.obey(0);
        let cause = if is_asked { KillCause::Asked } else { KillCause::Deadline };
        assert_eq!(world.outcome(id), Some(TaskEnd::Killed(cause)));
    }
}

#[test]
fn a_task_is_not_late_while_its_value_is_on_its_way() {
    let mut world = started(settings(1));
    let id = world.submit_with(0, hard_limit(10 * MILLI));
    world.begin(0);
    world.finish_unheard(0, MILLI);
    world.wait(SECOND);
    world.event(Event::Kill(world.places[&id]));
    assert!(!world.workers[&0].doomed);
    world.hear(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Reported));
}

#[test]
fn a_task_that_has_ended_is_late_if_its_value_never_comes() {
    let mut world = started(settings(1));
    let id = world.submit_with(0, hard_limit(10 * MILLI));
    world.begin(0);
    world.finish_unheard(0, MILLI);
    world.wait(SECOND + 10 * MILLI);
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Deadline)));
}
