//! Tasks never wait for a process that the pool may still start.

use std::collections::BTreeSet;
use std::thread;

use brigade::Pool;
use brigade_integration::pool;
use brigade_testkit::faults::{hangs, sleeps};
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass};

const WORKERS: usize = 4;
const LONG_TASKS: u64 = 24;

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
        let long = pool.submit(hangs, ()).unwrap();
        outcome(pool.submit(sleeps, 0).unwrap()).unwrap();
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

type Way = fn(&Pool, Vec<Pass>);

#[test]
fn long_tasks_after_short_ones_use_all_workers() {
    let ways: [(&str, Way); 4] = [
        ("submit", |pool, passes| {
            let handles: Vec<_> =
                passes.into_iter().map(|it| pool.submit(pass, it).unwrap()).collect();
            for handle in handles {
                outcome(handle).unwrap();
            }
        }),
        ("map", |pool, passes| assert!(pool.map(pass, passes).all(|it| it.is_ok()))),
        ("map in chunks of one", |pool, passes| {
            assert!(pool.map(pass, passes).chunk(1).all(|it| it.is_ok()));
        }),
        ("unordered map", |pool, passes| {
            assert!(pool.map_unordered(pass, passes).all(|it| it.is_ok()));
        }),
    ];
    for (way, run) in ways {
        let _watchdog = Watchdog::new(way, 2 * BOUND);
        let pool = used_to(0, 200, WORKERS);
        let gate = Gate::new();
        let passes = (0..LONG_TASKS).map(|number| gate.pass(number)).collect();
        thread::scope(|scope| {
            scope.spawn(|| run(&pool, passes));
            gate.wait_for_arrivals(WORKERS);
            gate.open();
        });
    }
}

#[test]
fn slow_items_behind_quick_ones_spread_over_all_workers() {
    let pool = pool(WORKERS);
    let inputs = std::iter::repeat_n(0, 20_000).chain([100; 24]);
    let workers: BTreeSet<u32> =
        pool.map(sleeps_if_asked, inputs).filter_map(Result::unwrap).collect();
    assert_eq!(workers.len(), WORKERS);
}

/// Returns the process that slept.
fn sleeps_if_asked(milliseconds: u64) -> Option<u32> {
    if milliseconds == 0 {
        return None;
    }
    sleeps(milliseconds);
    Some(std::process::id())
}
