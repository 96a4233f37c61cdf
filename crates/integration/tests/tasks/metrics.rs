//! Snapshots of pools with real workers: every task is counted once, however it ends.

use std::time::{Duration, Instant};

use brigade::Shutdown;
use brigade::metrics::{FailureKind, PoolState, WorkerState};
use brigade_integration::{assert_consistent, builder, pool, square};
use brigade_testkit::faults::{aborts, hangs, panics_with_string, sleeps};
use brigade_testkit::{BOUND, Gate, outcome, pass, pause, wait_until};

#[test]
fn tasks_are_counted_from_submission_to_their_end() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.task(pass).label("held").submit(gate.pass(1)).unwrap();
    let others: Vec<_> = (0..5).map(|n| pool.submit(square, n).unwrap()).collect();
    gate.wait_for_arrivals(1);
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert_eq!((snapshot.enqueued, snapshot.queued, snapshot.running), (6, 5, 1));
    assert!((5..=6).contains(&snapshot.max_queue_depth), "{snapshot}");
    let worker = &snapshot.workers[0];
    let running = worker.running.as_ref().expect("a running task");
    assert_eq!((running.task, &*running.label, running.attempt), (1, "held", 1));
    assert_eq!((worker.state, worker.pid), (WorkerState::Busy, Some(pool.worker_pids()[0])));
    assert!(others[4].cancel());
    gate.open();
    outcome(first).unwrap();
    for handle in others.into_iter().take(4) {
        outcome(handle).unwrap();
    }
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert_eq!((snapshot.succeeded, snapshot.cancelled, snapshot.pending), (5, 1, 0));
    for times in [snapshot.queue_time, snapshot.run_time, snapshot.delivery_time] {
        assert_eq!(times.count, 5, "{snapshot}");
    }
    assert_eq!(snapshot.start_time.count, 1);
    assert!(snapshot.bytes_in > 0 && snapshot.bytes_out > 0);
    assert_eq!((&*snapshot.labels[0].label, snapshot.labels[0].finished), ("held", 1));
    assert_eq!(snapshot.slowest[0].task, 1);
    let finished: u64 = snapshot.history.iter().map(|second| second.finished).sum();
    assert_eq!(finished, 5);
}

#[test]
fn the_time_in_the_queue_ends_when_the_worker_begins() {
    let pool = pool(1);
    pool.warm_up().unwrap();
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let begin = Instant::now();
    // Sent to the worker at once, behind the task that it runs.
    let second = pool.submit(square, 1).unwrap();
    pause(Duration::from_millis(500));
    let waited = begin.elapsed();
    gate.open();
    outcome(first).unwrap();
    outcome(second).unwrap();
    let snapshot = pool.snapshot();
    assert!(snapshot.queue_time.max >= waited, "{snapshot}");
    assert!(snapshot.run_time.max >= waited, "{snapshot}");
    assert!(snapshot.run_time.min < waited, "{snapshot}");
}

#[test]
fn failures_are_counted_by_kind_and_described() {
    let pool = pool(1);
    outcome(
        pool.task(panics_with_string).label("bad").submit("no <b>luck</b>".to_owned()).unwrap(),
    )
    .unwrap_err();
    outcome(pool.submit(aborts, ()).unwrap()).unwrap_err();
    let limit = Duration::from_millis(20);
    outcome(pool.task(hangs).deadline(limit).submit(()).unwrap()).unwrap_err();
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    outcome(pool.task(square).queue_deadline(limit).submit(1).unwrap()).unwrap_err();
    assert!(held.kill());
    outcome(held).unwrap_err();
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    for kind in [
        FailureKind::Panicked,
        FailureKind::WorkerDied,
        FailureKind::Deadline,
        FailureKind::QueueDeadline,
        FailureKind::Killed,
    ] {
        assert_eq!(snapshot.failures[&kind], 1, "{kind}");
    }
    assert_eq!((snapshot.finished, snapshot.deaths), (5, 3));
    let panic = snapshot.recent_failures.last().expect("the first failure");
    assert_eq!((panic.task, panic.kind, &*panic.worker), (1, FailureKind::Panicked, "0.1"));
    assert!(panic.text.contains("no <b>luck</b>"), "{}", panic.text);
    assert_eq!((snapshot.labels[0].finished, snapshot.labels[0].failed), (1, 1));
    assert!(snapshot.workers[0].failures >= 3 && snapshot.workers[0].restarts >= 2);
}

fn odd_fails(number: u64) -> u64 {
    assert!(number.is_multiple_of(2), "{number} is odd");
    number
}

#[test]
fn items_of_a_map_count_one_by_one() {
    let pool = pool(2);
    let values = pool.map(odd_fails, 0..1000).flatten().count();
    assert_eq!(values, 500);
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert_eq!((snapshot.finished, snapshot.succeeded, snapshot.pending), (1000, 500, 0));
    assert_eq!(snapshot.failures[&FailureKind::Panicked], 500);
    assert_eq!((snapshot.run_time.count, snapshot.queue_time.count), (1000, 1000));
    assert_eq!(snapshot.workers.iter().map(|worker| worker.tasks).sum::<u64>(), 1000);
    assert_eq!(snapshot.recent_failures.len(), 20);
}

#[test]
fn finished_items_of_a_running_chunk_are_finished() {
    let pool = pool(1);
    let gate = Gate::new();
    std::thread::scope(|scope| {
        let (pool, passes) = (&pool, [gate.pass(1), gate.pass(2)]);
        let map = scope.spawn(move || pool.map(pass, passes).chunk(2).count());
        gate.wait_for_arrivals(1);
        let snapshot = pool.snapshot();
        assert_consistent(&snapshot);
        assert_eq!((snapshot.pending, snapshot.running, snapshot.finished), (2, 1, 0));
        assert_eq!(snapshot.workers[0].running.as_ref().map(|task| task.items), Some(2));
        gate.open();
        assert_eq!(map.join().unwrap(), 2);
    });
    assert_eq!(pool.snapshot().finished, 2);
}

fn aborts_at_fifty(number: u64) -> u64 {
    if number == 50 {
        std::process::abort();
    }
    number
}

#[test]
fn a_dropped_map_a_crash_and_a_stream_are_accounted_for() {
    let pool = pool(2);
    assert_eq!(pool.map(aborts_at_fifty, 0..200).filter(Result::is_err).count(), 1);
    assert_consistent(&pool.snapshot());
    let mut map = pool.map(sleeps, std::iter::repeat_n(1, 500));
    map.next().unwrap().unwrap();
    drop(map);
    assert_consistent(&pool.snapshot());
    let stream = pool.stream(square).start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20 {
                stream.put(number).unwrap();
            }
            stream.finish();
        });
        assert_eq!(stream.iter().filter(|item| item.result.is_ok()).count(), 20);
    });
    drop(stream);
    wait_until("the rest of the map to end", BOUND, || pool.snapshot().pending == 0);
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert!(snapshot.succeeded >= 199 + 1 + 20, "{snapshot}");
}

#[test]
fn a_broken_pool_and_a_shut_down_pool_leave_nothing_pending() {
    let pool = builder(1).initializer(|(): ()| -> u32 { panic!("no model") }, ()).build().unwrap();
    let handles: Vec<_> = (0..10).map_while(|n| pool.submit(square, n).ok()).collect();
    for handle in handles {
        outcome(handle).unwrap_err();
    }
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert!(matches!(snapshot.state, PoolState::Broken { .. }), "{snapshot}");
    assert_eq!(snapshot.pending, 0);
    assert!(snapshot.failures[&FailureKind::PoolBroken] > 0);

    let pool = self::pool(1);
    let gate = Gate::new();
    let _held = pool.submit(pass, gate.pass(1)).unwrap();
    let _queued: Vec<_> = (0..5).map(|n| pool.submit(square, n).unwrap()).collect();
    gate.wait_for_arrivals(1);
    pool.shutdown_with(Shutdown::Kill, Duration::from_secs(5)).unwrap();
    let snapshot = pool.snapshot();
    assert_consistent(&snapshot);
    assert_eq!((snapshot.state, snapshot.pending), (PoolState::Ended, 0));
    assert_eq!((snapshot.cancelled, snapshot.failures[&FailureKind::Killed]), (5, 1));
    assert!(snapshot.workers.iter().all(|worker| worker.state == WorkerState::Vacant));
}

#[test]
fn a_worker_shows_what_it_did_with_its_time() {
    let initializer = |(): ()| pause(Duration::from_millis(20));
    let pool = builder(1).initializer(initializer, ()).build().unwrap();
    outcome(pool.submit(sleeps, 40).unwrap()).unwrap();
    let snapshot = pool.snapshot();
    let worker = &snapshot.workers[0];
    let lived = snapshot.age.as_secs_f64();
    assert!(worker.shares.run >= 0.04 / lived, "{snapshot}");
    // The host learns a little late that the worker has begun to initialize.
    assert!(worker.shares.initialize > 0.0, "{snapshot}");
    assert!(worker.shares.start + worker.shares.initialize >= 0.02 / lived, "{snapshot}");
    assert!(snapshot.start_time.min >= Duration::from_millis(20));
    assert_eq!((worker.tasks, worker.slowest[0].task), (1, 1));
}
