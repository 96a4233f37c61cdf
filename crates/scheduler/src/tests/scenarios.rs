//! Scenarios step by step: one promise per test.

use std::time::Duration;

use brigade_base::{Attempt, TaskId, WorkerId};

use super::model::Data;
use super::world::{World, settings, started};
use crate::{Event, KillCause, Settings, Shutdown, TaskEnd};

const SHORT: Duration = Duration::from_micros(1);
const TEN_MICROS: Duration = Duration::from_micros(10);
const LONG: Duration = Duration::from_secs(10);

fn finished(worker: WorkerId, task: TaskId, attempt: Attempt) -> Event<Data> {
    Event::Finished { worker, task, attempt, run_time: SHORT, worn: false, failure: None }
}

#[test]
fn tasks_start_in_order_of_submission() {
    let mut world = started(settings(1));
    let ids: Vec<u64> = (0..20).map(|_| world.submit(0)).collect();
    world.run_dry();
    assert_eq!(world.start_order, ids);
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}

#[test]
fn tasks_of_a_worker_that_never_ran_go_back_to_the_queue() {
    let mut world = started(settings(2));
    let ids: Vec<u64> = (0..2).map(|_| world.submit(0)).collect();
    world.begin(0);
    world.give_up_start(1);
    world.run_dry();
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}

#[test]
fn a_worker_that_has_worked_was_started() {
    for (has_worked, end) in [(false, TaskEnd::Broken), (true, TaskEnd::Reported)] {
        let mut world = started(settings(1));
        if has_worked {
            world.submit(0);
            world.run_dry();
        }
        let id = world.submit(0);
        world.give_up_start(0);
        world.run_dry();
        assert_eq!(world.outcome(id), Some(end));
    }
}

#[test]
fn no_more_workers_start_than_the_work_needs() {
    let mut world = World::new(settings(4));
    assert_eq!(world.spawns, 0);
    world.submit(0);
    assert_eq!(world.spawns, 1);
    world.run_dry();
    world.submit(0);
    world.run_dry();
    assert_eq!(world.spawns, 1, "an idle worker is used before another is started");
    for _ in 0..10 {
        world.submit(0);
    }
    assert_eq!(world.spawns, 4);
}

#[test]
fn nothing_is_prefetched_behind_long_tasks() {
    let mut world = started(settings(1));
    for _ in 0..30 {
        world.submit(0);
        world.begin(0);
        world.finish(0, LONG);
    }
    world.submit(0);
    world.submit(0);
    assert_eq!(world.workers[&0].frames.len(), 1);
}

#[test]
fn short_tasks_are_prefetched_up_to_the_credit() {
    let mut world = started(settings(1));
    for _ in 0..300 {
        world.submit(0);
        world.begin(0);
        world.finish(0, SHORT);
    }
    for _ in 0..50 {
        world.submit(0);
    }
    assert_eq!(world.workers[&0].frames.len(), 8);
}

#[test]
fn a_prefetched_task_moves_to_an_idle_worker() {
    let mut world = started(settings(2));
    world.get_used_to(TEN_MICROS);
    let before = world.outcomes.len();
    for _ in 0..6 {
        world.submit(0);
    }
    // Slot 0 is busy with its first task; slot 1 does everything else.
    world.begin(0);
    for _ in 0..20 {
        world.begin(1);
        world.finish(1, TEN_MICROS);
    }
    assert_eq!(world.outcomes.len() - before, 5, "only the running task is left");
}

#[test]
fn the_more_brief_tasks_wait_the_more_are_prefetched() {
    for (usual, few, many) in [(TEN_MICROS, 50, 400), (Duration::from_micros(200), 2, 2)] {
        let mut world = started(Settings { credit: 512, ..settings(1) });
        world.scheduler.run_times.set_usual(usual);
        let mut submit = |tasks| {
            for _ in 0..tasks {
                world.submit(0);
            }
            (world.workers[&0].frames.len(), world.scheduler.tasks.queued())
        };
        assert_eq!(submit(3 * few).0, few);
        let (frames, queued) = submit(3 * few);
        assert!(frames > few || many == few, "{usual:?}");
        assert!(frames <= queued, "as much is left for other workers");
        assert_eq!(submit(3 * many).0, many, "{usual:?}");
    }
}

#[test]
fn each_idle_worker_takes_over_a_prefetched_task() {
    let mut world = World::new(settings(3));
    world.scheduler.run_times.set_usual(TEN_MICROS);
    let ids: Vec<u64> = (0..5).map(|_| world.submit(0)).collect();
    for slot in 0..3 {
        world.start(slot);
    }
    for slot in 0..3 {
        world.begin(slot);
    }
    assert_eq!(world.start_order.len(), 3, "two of five moved to workers that came later");
    for slot in [1, 2] {
        world.finish_unheard(slot, TEN_MICROS);
    }
    world.hear_all();
    for slot in [1, 2] {
        world.begin(slot);
    }
    assert_eq!(world.start_order.len(), ids.len(), "none waits behind another");
}

#[test]
fn packed_tasks_are_rescued_from_behind_a_long_one() {
    let mut world = started(settings(2));
    world.get_used_to(SHORT);
    let before = world.outcomes.len();
    for _ in 0..6 {
        world.submit(0);
    }
    let frames = |world: &World, slot| world.workers[&slot].frames.len();
    let packed = u32::from(frames(&world, 1) > 0);
    assert_eq!((frames(&world, packed), frames(&world, 1 - packed)), (6, 0));
    world.begin(packed);
    assert!(world.next_tick() && world.next_tick(), "a check is planned");
    for _ in 0..20 {
        world.begin(1 - packed);
        world.finish(1 - packed, SHORT);
    }
    assert_eq!(world.outcomes.len() - before, 5, "only the running task is left");
    world.finish(packed, SHORT);
    assert!(world.next_tick());
    assert!((0..2).any(|_| !world.next_tick()), "no check is planned when nothing is prefetched");
}

#[test]
fn busy_workers_are_not_checked_while_none_is_missing() {
    let mut world = started(settings(2));
    world.get_used_to(TEN_MICROS);
    for _ in 0..30 {
        world.submit(0);
    }
    world.event(Event::WarmUp);
    assert!((0..2).any(|_| !world.next_tick()), "a check plans the next one");
}

#[test]
fn a_crash_fails_only_the_task_that_ran() {
    let mut world = started(settings(1));
    let ids: Vec<u64> = (0..5).map(|_| world.submit(0)).collect();
    world.begin(0);
    world.crash(0);
    assert_eq!(world.outcome(ids[0]), Some(TaskEnd::Died));
    world.run_dry();
    for id in &ids[1..] {
        assert_eq!(world.outcome(*id), Some(TaskEnd::Reported));
    }
    assert_eq!(world.start_order, ids, "tasks that had not started keep their order");
}

#[test]
fn a_retried_task_runs_again_before_the_others() {
    let mut world = started(settings(1));
    let first = world.submit(1);
    let second = world.submit(0);
    world.begin(0);
    world.crash(0);
    assert_eq!(world.outcome(first), None);
    world.run_dry();
    assert_eq!(world.outcome(first), Some(TaskEnd::Reported));
    assert_eq!(world.start_order, [first, first, second]);
}

#[test]
fn a_task_fails_when_its_retries_are_used_up() {
    let mut world = started(settings(1));
    let id = world.submit(2);
    for _ in 0..3 {
        assert_eq!(world.outcome(id), None);
        world.start(0);
        world.begin(0);
        world.crash(0);
    }
    assert_eq!(world.outcome(id), Some(TaskEnd::Died));
}

#[test]
fn a_task_can_be_cancelled_until_it_starts() {
    let mut world = started(settings(1));
    let running = world.submit(0);
    world.begin(0);
    let queued = world.submit(0);
    world.cancel(running);
    world.cancel(queued);
    assert_eq!(world.outcome(running), None);
    assert_eq!(world.outcome(queued), Some(TaskEnd::Cancelled));
    world.run_dry();
    assert_eq!(world.outcome(running), Some(TaskEnd::Reported));
}

#[test]
fn a_cancelled_prefetched_task_never_starts() {
    let mut world = started(settings(1));
    let assigned = world.submit(0);
    world.cancel(assigned);
    assert_eq!(world.outcome(assigned), Some(TaskEnd::Cancelled));
    let next = world.submit(0);
    world.run_dry();
    assert_eq!(world.start_order, [next]);
}

#[test]
fn a_permanent_start_failure_breaks_the_pool_at_once() {
    let mut world = World::new(settings(2));
    let id = world.submit(0);
    world.fail_start(0, true);
    assert_eq!(world.outcome(id), Some(TaskEnd::Broken));
    let late = world.submit(0);
    assert_eq!(world.outcome(late), Some(TaskEnd::Broken));
    assert_eq!(world.scheduler.broken_reason().as_deref(), Some("made up"));
}

#[test]
fn a_failed_driver_breaks_the_pool_and_running_tasks_finish() {
    let mut world = started(settings(1));
    let (running, waiting) = (world.submit(0), world.submit(0));
    world.begin(0);
    world.event(Event::Break { reason: "made up".into() });
    assert_eq!(world.outcome(waiting), Some(TaskEnd::Broken));
    assert_eq!(world.scheduler.broken_reason().as_deref(), Some("made up"));
    world.event(Event::Break { reason: "another reason".into() });
    world.finish(0, SHORT);
    assert_eq!(world.outcome(running), Some(TaskEnd::Reported));
    assert_eq!(world.scheduler.broken_reason().as_deref(), Some("made up"), "the first one counts");
}

#[test]
fn repeated_failed_starts_pause_and_then_break_the_pool() {
    let mut world = World::new(settings(1));
    let id = world.submit(0);
    let begin = world.now;
    for _ in 0..20 {
        world.fail_start(0, false);
        if world.broke {
            break;
        }
        if world.workers.is_empty() {
            assert!(world.next_tick());
        }
    }
    assert_eq!(world.outcome(id), Some(TaskEnd::Broken));
    assert_eq!(world.spawns, 5);
    assert!(world.now > begin, "no pause between the starts");
}

#[test]
fn workers_that_keep_dying_idle_break_the_pool() {
    let mut world = started(settings(1));
    for _ in 0..100 {
        world.start(0);
        world.crash(0);
    }
    assert!(world.broke);
    assert_eq!(world.spawns, 11);
}

#[test]
fn workers_that_die_in_tasks_never_break_the_pool() {
    let mut world = started(settings(1));
    for _ in 0..200 {
        let id = world.submit(0);
        world.start(0);
        world.begin(0);
        world.crash(0);
        assert_eq!(world.outcome(id), Some(TaskEnd::Died));
    }
    assert!(!world.broke);
}

#[test]
fn a_drain_runs_everything_and_ends() {
    let mut world = started(settings(2));
    let ids: Vec<u64> = (0..10).map(|_| world.submit(0)).collect();
    world.shutdown(Shutdown::Drain, None);
    let late = world.submit(0);
    assert_eq!(world.outcome(late), Some(TaskEnd::Closed));
    world.run_dry();
    assert!(world.ended);
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}

#[test]
fn a_drain_replaces_workers_that_die() {
    let mut world = started(settings(1));
    let ids: Vec<u64> = (0..3).map(|_| world.submit(0)).collect();
    world.shutdown(Shutdown::Drain, None);
    world.begin(0);
    world.crash(0);
    world.run_dry();
    assert!(world.ended);
    assert_eq!(world.outcome(ids[0]), Some(TaskEnd::Died));
    assert_eq!(world.outcome(ids[2]), Some(TaskEnd::Reported));
}

#[test]
fn a_drain_that_takes_too_long_terminates_and_then_kills() {
    let mut world = started(settings(1));
    let running = world.submit(5);
    let queued = world.submit(0);
    world.begin(0);
    world.shutdown(Shutdown::Drain, Some(Duration::from_secs(3)));
    for _ in 0..50 {
        if world.workers[&0].doomed {
            break;
        }
        assert!(world.next_tick(), "no deadline although a task hangs");
    }
    world.obey(0);
    assert_eq!(world.outcome(queued), Some(TaskEnd::Cancelled));
    assert_eq!(world.outcome(running), Some(TaskEnd::Killed(KillCause::Shutdown)));
    assert!(world.ended);
}

#[test]
fn the_earliest_deadline_of_several_shutdowns_counts() {
    let second = Duration::from_secs(1);
    let later = [
        (Shutdown::Terminate, Some(second)),
        (Shutdown::Drain, Some(Duration::ZERO)),
        (Shutdown::Terminate, Some(600 * second)),
    ];
    for (mode, timeout) in later {
        let mut world = started(settings(1));
        world.submit(0);
        world.begin(0);
        let first = if timeout > Some(second) { Shutdown::Drain } else { Shutdown::Terminate };
        let patience = if first == Shutdown::Drain { Duration::ZERO } else { 600 * second };
        world.shutdown(first, Some(patience));
        world.shutdown(mode, timeout);
        world.wait(second);
        assert!(world.workers[&0].doomed, "{first:?} within {patience:?}, {mode:?} {timeout:?}");
    }
}

#[test]
fn a_drain_does_not_wait_for_a_stopped_worker() {
    let mut world = started(settings(1));
    let id = world.submit(0);
    world.begin(0);
    world.shutdown(Shutdown::Drain, None);
    assert!(world.next_tick());
    let worker = world.workers[&0].id;
    world.event(Event::FoundStopped { worker });
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Stopped)));
    assert!(world.ended);
}

#[test]
fn a_drain_kills_a_stopped_worker_whose_task_was_cancelled() {
    let mut world = started(settings(1));
    let cancelled = world.submit(0);
    let waiting = world.submit(0);
    world.freeze(0, true);
    world.cancel(cancelled);
    world.shutdown(Shutdown::Drain, None);
    assert!(world.next_tick());
    world.run_dry();
    assert_eq!(world.outcome(waiting), Some(TaskEnd::Reported));
    assert!(world.ended);
}

#[test]
fn a_worker_that_does_not_stop_is_killed() {
    let mut world = started(settings(1));
    world.shutdown(Shutdown::Drain, None);
    assert!(world.workers[&0].stop_asked);
    assert!(world.next_tick());
    assert!(!world.workers[&0].doomed);
    assert!(world.next_tick());
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert!(world.ended);
}

#[test]
fn a_shutdown_kills_workers_that_are_still_starting() {
    let mut world = World::new(settings(1));
    let id = world.submit(0);
    world.shutdown(Shutdown::CancelPending, None);
    assert_eq!(world.outcome(id), Some(TaskEnd::Cancelled));
    assert!(world.workers[&0].doomed);
    world.obey(0);
    assert!(world.ended);
}

#[test]
fn packed_tasks_stay_while_their_worker_makes_progress() {
    let mut world = started(settings(2));
    world.get_used_to(SHORT);
    for _ in 0..6 {
        world.submit(0);
    }
    let packed = u32::from(!world.workers[&1].frames.is_empty());
    for left in (1..6).rev() {
        world.begin(packed);
        world.finish(packed, SHORT);
        assert!(world.next_tick());
        assert_eq!(
            world.workers[&packed].frames.len(),
            left,
            "one task finished and none was moved"
        );
    }
}

#[test]
fn an_outcome_for_another_task_ends_the_worker() {
    let first = Attempt::first();
    for (other, attempt) in [(1, first), (0, first.next())] {
        let mut world = started(settings(1));
        let id = world.submit(0);
        world.begin(0);
        let worker = world.workers[&0].id;
        let task = TaskId::new(id + other);
        world.event(finished(worker, task, attempt));
        assert!(world.workers[&0].doomed);
        world.obey(0);
        assert_eq!(world.outcome(id), Some(TaskEnd::Killed(KillCause::Protocol)));
    }
}

#[test]
fn outcomes_of_a_dead_worker_are_dropped_and_counted() {
    let mut world = started(settings(1));
    let id = world.submit(0);
    world.begin(0);
    let worker = world.workers[&0].id;
    world.crash(0);
    let (task, attempt) = (TaskId::new(id), Attempt::first());
    world.event(finished(worker, task, attempt));
    assert_eq!(world.outcome(id), Some(TaskEnd::Died));
    assert_eq!(world.scheduler.counters().stale_replies, 1);
}

#[test]
fn a_task_whose_workers_violate_the_protocol_is_quarantined() {
    let mut world = World::new(Settings { quarantine: 3, ..settings(1) });
    let id = world.submit(100);
    for _ in 0..3 {
        world.start(0);
        world.begin(0);
        let worker = world.workers[&0].id;
        assert_eq!(world.outcome(id), None);
        world.event(Event::Misbehaved { worker });
        world.obey(0);
    }
    assert_eq!(world.outcome(id), Some(TaskEnd::Quarantined));
}

#[test]
fn workers_that_violate_the_protocol_at_once_break_the_pool() {
    let mut world = World::new(settings(1));
    let id = world.submit(0);
    for _ in 0..settings(1).restart_limit {
        world.start(0);
        let worker = world.workers[&0].id;
        world.event(Event::Misbehaved { worker });
        world.obey(0);
        assert!(!world.broke);
    }
    world.start(0);
    let worker = world.workers[&0].id;
    world.event(Event::Misbehaved { worker });
    world.obey(0);
    assert_eq!(world.outcome(id), Some(TaskEnd::Broken));
}

#[test]
fn a_warm_up_goes_on_after_failed_starts() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    for _ in 0..2 {
        world.fail_start(0, false);
        world.fail_start(1, false);
        while world.workers.len() < 2 {
            assert!(world.next_tick(), "missing workers are not started");
        }
    }
    world.start(0);
    world.start(1);
    assert_eq!(world.scheduler.ready_workers(), 2);
    assert_eq!(world.scheduler.next_deadline(), None, "a warm pool has no deadline");
}

#[test]
fn a_pause_that_is_over_wakes_the_driver_only_once() {
    let mut world = World::new(settings(4));
    world.submit(0);
    for _ in 0..2 {
        world.fail_start(0, false);
    }
    assert!(world.workers.is_empty());
    assert!(world.next_tick());
    assert_eq!(world.workers.len(), 1);
    assert_eq!(world.scheduler.next_deadline(), None);
}

#[test]
fn a_failed_start_breaks_no_pool_with_another_worker() {
    let mut world = World::new(settings(2));
    world.event(Event::WarmUp);
    world.start(0);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(world.submit(0));
        world.fail_start(1, true);
        world.next_tick();
    }
    assert!(!world.broke);
    world.fail_start(1, false);
    world.shutdown(Shutdown::Drain, None);
    while !world.ended {
        world.begin(0);
        world.finish(0, SHORT);
        world.start(1);
        for slot in world.slots() {
            world.obey(slot);
        }
    }
    assert!(ids.iter().all(|id| world.outcome(*id) == Some(TaskEnd::Reported)));
}
