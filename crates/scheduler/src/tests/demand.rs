//! Starting processes for waiting tasks, including those that were prefetched to a busy worker.

use std::collections::BTreeMap;
use std::time::Duration;

use brigade_base::Monotonic;

use super::fake_worker::{FakePhase, Frame, FrameState};
use super::world::{MILLI, World, settings};
use crate::Settings;

const MICRO: Duration = Duration::from_micros(1);

/// Time that a process takes to become ready.
const START: Duration = Duration::from_millis(5);

/// Returns a pool that has run short tasks one by one.
fn used_to(run_time: Duration, workers: usize) -> World {
    let mut world = World::new(Settings { credit: 512, ..settings(workers) });
    for _ in 0..200 {
        world.submit(0);
        run_all(&mut world, |_| run_time);
    }
    assert_eq!(world.spawns, 1, "one task at a time needs one process");
    world
}

/// Advances time until every task has ended. Each task takes the time that `run_time` returns.
fn run_all(world: &mut World, run_time: impl Fn(u64) -> Duration) -> Duration {
    run_until(world, |world| world.outcomes.len() as u64 == world.next_id - 1, run_time)
}

fn run_until(
    world: &mut World,
    ends: impl Fn(&World) -> bool,
    run_time: impl Fn(u64) -> Duration,
) -> Duration {
    let begin = world.now;
    let mut ready_at = BTreeMap::new();
    while !ends(world) {
        for slot in world.slots() {
            world.begin(slot);
        }
        let mut due: Vec<(Monotonic, Option<u32>)> = Vec::new();
        for (slot, fake) in &world.workers {
            if fake.phase == FakePhase::Starting {
                let ready = *ready_at.entry(fake.id).or_insert(world.now.saturating_add(START));
                due.push((ready, Some(*slot)));
            } else if let Some(frame) = fake.frames.front()
                && let FrameState::Running { since } = frame.state
            {
                due.push((since.saturating_add(run_time(frame.id.get())), Some(*slot)));
            }
        }
        due.extend(world.scheduler.next_deadline().map(|due| (due, None)));
        let (time, slot) = *due.iter().min().expect("something is due while a task waits");
        world.now = world.now.max(time);
        match slot {
            None => drop(world.next_tick()),
            Some(slot) if world.workers[&slot].phase == FakePhase::Starting => world.start(slot),
            Some(slot) => {
                let id = world.workers[&slot].frames[0].id.get();
                world.finish(slot, run_time(id));
            }
        }
    }
    world.now.saturating_since(begin)
}

#[test]
fn long_tasks_after_short_ones_use_all_workers() {
    for short in [Duration::ZERO, MICRO, 100 * MICRO, 5 * MILLI, 20 * MILLI] {
        let mut world = used_to(short, 4);
        for _ in 0..24 {
            world.submit(0);
        }
        let took = run_all(&mut world, |_| 100 * MILLI);
        assert!(took <= 630 * MILLI, "after tasks of {short:?}: {took:?}");
    }
}

#[test]
fn tasks_behind_a_hanging_task_move_to_another_process() {
    for (short, workers) in [(MICRO, 2), (5 * MILLI, 2), (20 * MILLI, 4), (Duration::ZERO, 8)] {
        let mut world = used_to(short, workers);
        let long = world.submit(0);
        let next = world.submit(0);
        let ends = |world: &World| world.outcome(next).is_some();
        let run_time = |id| if id == long { 3_000 * MILLI } else { short };
        let took = run_until(&mut world, ends, run_time);
        assert!(took <= 2 * MILLI + START + short, "after tasks of {short:?}: {took:?}");
        assert_eq!(world.spawns, 2, "one more process than before, after tasks of {short:?}");
    }
}

#[test]
fn a_worker_without_progress_is_sent_nothing_more() {
    let mut world = used_to(MICRO, 2);
    let hangs = world.submit(0);
    let behind: Vec<u64> = (0..40).map(|_| world.submit(0)).collect();
    world.begin(0);
    world.wait(3 * MILLI);
    let later = world.submit(0);
    let waits = |frame: &&Frame| frame.state == FrameState::Queued;
    assert_eq!(world.workers[&0].frames.iter().filter(waits).count(), 0);
    let taken_back = world.scheduler.counters().stolen;
    assert_eq!(taken_back, behind.len() as u64, "each is taken back once");
    world.start(1);
    for _ in 0..=behind.len() {
        world.begin(1);
        world.finish(1, MICRO);
    }
    let order = &world.start_order[200..];
    assert_eq!(order[0], hangs);
    assert_eq!(order[1..=behind.len()], behind, "in the order of submission");
    assert_eq!(order.last(), Some(&later));
    assert_eq!(world.scheduler.counters().stolen, taken_back);
}

#[test]
fn tasks_beyond_the_current_depth_are_revoked() {
    let mut world = used_to(MICRO, 2);
    for _ in 0..200 {
        world.submit(0);
    }
    let took = run_all(&mut world, |_| 500 * MICRO);
    assert!(took <= 65 * MILLI, "two workers need 50 ms, these took {took:?}");
}

#[test]
fn bursts_of_short_tasks_start_no_worker_and_revoke_nothing() {
    let mut world = used_to(MICRO, 4);
    for _ in 0..3 {
        for _ in 0..150 {
            world.submit(0);
        }
        run_all(&mut world, |_| MICRO);
    }
    assert_eq!((world.spawns, world.scheduler.counters().stolen), (1, 0));
    while world.next_tick() {}
}

#[test]
fn the_first_progress_check_only_records() {
    let mut world = used_to(MICRO, 2);
    for _ in 0..10 {
        world.submit(0);
    }
    run_all(&mut world, |_| MICRO);
    while world.next_tick() {}
    for _ in 0..10 {
        world.submit(0);
    }
    world.begin(0);
    // The clock of submitters lags behind, so the check may be due at once.
    world.next_tick();
    assert_eq!((world.spawns, world.scheduler.counters().stolen), (1, 0));
}

#[test]
fn only_several_long_runs_in_a_row_change_the_usual_run_time() {
    let mut world = used_to(MICRO, 1);
    world.submit(0);
    run_all(&mut world, |_| 100 * MILLI);
    assert!(
        world.scheduler.run_times.usual() < 2 * MICRO,
        "{:?}",
        world.scheduler.run_times.usual()
    );
    for _ in 0..3 {
        world.submit(0);
        run_all(&mut world, |_| 100 * MILLI);
    }
    assert!(
        world.scheduler.run_times.usual() > 10 * MILLI,
        "{:?}",
        world.scheduler.run_times.usual()
    );
}
