//! Tasks never wait for a process that the pool may still start.

use std::time::{Duration, Instant};

use brigade::Pool;
use brigade_integration::pool;
use brigade_testkit::faults::{hangs, sleeps};
use brigade_testkit::outcome;

brigade::init_for_tests!();

const LONG: u64 = 100;
const LONG_TASKS: usize = 24;

/// Four workers need 0.6 s for all long tasks, and one needs 2.4 s.
const FAR_LESS_THAN_ONE_WORKER_NEEDS: Duration = Duration::from_millis(1_500);

/// Builds a pool with one process that has learned how short tasks are.
fn used_to(milliseconds: u64, tasks: usize, workers: usize) -> Pool {
    let pool = pool(workers);
    for _ in 0..tasks {
        outcome(pool.submit(sleeps, milliseconds).unwrap()).unwrap();
    }
    assert_eq!(pool.worker_pids().len(), 1, "one task at a time needs one process");
    pool
}

#[test]
fn a_short_task_behind_a_long_one_gets_its_own_worker() {
    for (milliseconds, tasks, workers) in [(5, 30, 2), (20, 30, 4), (0, 100, 8)] {
        let pool = used_to(milliseconds, tasks, workers);
        let mut long = pool.submit(sleeps, 3_000).unwrap();
        outcome(pool.submit(sleeps, 0).unwrap()).unwrap();
        let done = long.try_get().is_some();
        assert!(!done, "the short one waited for the long one, after tasks of {milliseconds} ms");
        long.kill();
    }
}

#[test]
fn a_hanging_task_does_not_hold_up_prefetched_tasks() {
    let pool = used_to(0, 2_000, 4);
    let hanging = pool.submit(hangs, ()).unwrap();
    let behind: Vec<_> = (0..30).map(|_| pool.submit(sleeps, 0).unwrap()).collect();
    for handle in behind {
        outcome(handle).unwrap();
    }
    for _ in 0..10 {
        outcome(pool.submit(sleeps, 0).unwrap()).unwrap();
    }
    hanging.kill();
}

type Way = fn(&Pool);

#[test]
fn long_tasks_after_short_ones_use_all_workers() {
    let ways: [(&str, Way); 4] = [
        ("submit", |pool| {
            let handles: Vec<_> =
                (0..LONG_TASKS).map(|_| pool.submit(sleeps, LONG).unwrap()).collect();
            for handle in handles {
                outcome(handle).unwrap();
            }
        }),
        ("map", |pool| assert!(pool.map(sleeps, [LONG; LONG_TASKS]).all(|it| it.is_ok()))),
        ("map in chunks of one", |pool| {
            assert!(pool.map(sleeps, [LONG; LONG_TASKS]).chunk(1).all(|it| it.is_ok()));
        }),
        ("unordered map", |pool| {
            assert!(pool.map_unordered(sleeps, [LONG; LONG_TASKS]).all(|it| it.is_ok()));
        }),
    ];
    for (way, run) in ways {
        let pool = used_to(0, 200, 4);
        let begin = Instant::now();
        run(&pool);
        let took = begin.elapsed();
        assert!(took < FAR_LESS_THAN_ONE_WORKER_NEEDS, "{way}: {took:?}");
    }
}

#[test]
fn slow_items_behind_quick_ones_spread_over_all_workers() {
    let pool = pool(4);
    let inputs: Vec<u64> = std::iter::repeat_n(0, 20_000).chain([LONG; LONG_TASKS]).collect();
    let begin = Instant::now();
    assert!(pool.map(sleeps_if_asked, inputs).all(|it| it.is_ok()));
    let took = begin.elapsed();
    assert!(took < FAR_LESS_THAN_ONE_WORKER_NEEDS, "{took:?}");
}

fn sleeps_if_asked(milliseconds: u64) -> u64 {
    if milliseconds > 0 { sleeps(milliseconds) } else { 0 }
}
