//! The basic promises of a pool: values, their order, and the workers that compute them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use brigade::{Pool, PoolError, worker};
use brigade_integration::{attempt, builder, pool, worker_died};
use brigade_testkit::faults::{aborts, echoes, sleeps};
use brigade_testkit::{BOUND, Gate, outcome, pass, processes, wait_until};

fn square(number: u64) -> u64 {
    number * number
}

fn pid_of_worker((): ()) -> u32 {
    std::process::id()
}

/// Returns the number of tasks that this worker has counted before this one.
fn count((): ()) -> u64 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn each_handle_gets_its_own_value() {
    let pool = pool(2);
    let handles: Vec<_> = (0..2_000).map(|number| pool.submit(square, number).unwrap()).collect();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
}

#[test]
fn a_closure_that_captures_nothing_is_a_task() {
    let pool = pool(1);
    let handle = pool
        .submit(|(text, times): (String, usize)| text.repeat(times), ("ab".to_owned(), 3))
        .unwrap();
    assert_eq!(outcome(handle).unwrap(), "ababab");
}

#[test]
fn a_returned_error_is_a_value() {
    let pool = pool(1);
    let handle = pool.submit(
        |text: String| text.parse::<u32>().map_err(|error| error.to_string()),
        "x".to_owned(),
    );
    assert_eq!(outcome(handle.unwrap()).unwrap(), Err("invalid digit found in string".to_owned()));
}

#[test]
fn tasks_run_in_another_process() {
    let pool = pool(1);
    let pid = outcome(pool.submit(pid_of_worker, ()).unwrap()).unwrap();
    assert_ne!(pid, std::process::id());
    assert_eq!(pool.worker_pids(), [pid]);
    assert_eq!(processes::parent_of(pid), Some(std::process::id()));
}

#[test]
fn one_worker_runs_tasks_in_submission_order() {
    let pool = pool(1);
    let handles: Vec<_> = (0..500).map(|_| pool.submit(count, ()).unwrap()).collect();
    let counts: Vec<u64> = handles.into_iter().map(|handle| outcome(handle).unwrap()).collect();
    assert_eq!(counts, (0..500).collect::<Vec<_>>());
}

#[test]
fn workers_start_when_there_is_work_for_them() {
    let pool = pool(3);
    assert!(pool.worker_pids().is_empty());
    let gate = Gate::new();
    let one = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    assert_eq!(pool.worker_pids().len(), 1);
    let two = pool.submit(pass, gate.pass(2)).unwrap();
    gate.wait_for_arrivals(2);
    assert_eq!(pool.worker_pids().len(), 2);
    gate.open();
    assert_eq!((outcome(one).unwrap(), outcome(two).unwrap()), (1, 2));
    assert_eq!(pool.workers(), 3);
}

#[test]
fn an_idle_worker_is_reused_before_another_one_starts() {
    let pool = pool(4);
    for number in 0..50 {
        assert_eq!(outcome(pool.submit(square, number).unwrap()).unwrap(), number * number);
    }
    assert_eq!(pool.worker_pids().len(), 1);
}

#[test]
fn warm_up_returns_when_all_workers_are_ready() {
    let pool = pool(3);
    pool.warm_up().unwrap();
    let pids = pool.worker_pids();
    assert_eq!(pids.iter().collect::<BTreeSet<_>>().len(), 3);
    assert!(pids.iter().all(|pid| processes::is_alive(*pid)));
    pool.warm_up().unwrap();
    assert_eq!(pool.worker_pids().len(), 3);
    assert_eq!(pool.worker_restarts(), 0);
}

#[test]
fn no_more_tasks_run_at_once_than_there_are_workers() {
    let pool = pool(2);
    let gate = Gate::new();
    let handles: Vec<_> =
        (0..20).map(|number| pool.submit(pass, gate.pass(number)).unwrap()).collect();
    gate.wait_for_arrivals(2);
    pool.warm_up().unwrap();
    assert_eq!((gate.arrivals(), pool.worker_pids().len()), (2, 2));
    gate.open();
    for (number, handle) in (0..).zip(handles) {
        assert_eq!(outcome(handle).unwrap(), number);
    }
}

#[test]
fn a_long_task_holds_up_no_other() {
    let pool = pool(2);
    // Enough short tasks for the pool to expect short ones and to prefetch.
    for result in pool.map(square, 0..2_000) {
        result.unwrap();
    }
    let gate = Gate::new();
    let long = pool.submit(pass, gate.pass(7)).unwrap();
    gate.wait_for_arrivals(1);
    let short: Vec<_> = (0..200).map(|number| pool.submit(square, number).unwrap()).collect();
    for (number, handle) in (0..).zip(short) {
        assert_eq!(outcome(handle).unwrap(), number * number);
    }
    assert!(!long.is_done());
    gate.open();
    assert_eq!(outcome(long).unwrap(), 7);
}

#[test]
fn a_task_knows_its_worker_and_its_attempt() {
    let pool = pool(1);
    let look = |(): ()| (worker::slot(), worker::generation(), worker::seed(), attempt());
    let first = outcome(pool.submit(look, ()).unwrap()).unwrap();
    assert_eq!(
        outcome(pool.submit(look, ()).unwrap()).unwrap(),
        first,
        "as long as the worker lives"
    );
    worker_died(outcome(pool.submit(aborts, ()).unwrap()));
    let second = outcome(pool.submit(look, ()).unwrap()).unwrap();
    assert_eq!(first.0, second.0, "the replacement fills the same slot");
    assert!(second.1 > first.1, "the replacement is of a later generation");
    assert_ne!(first.2, second.2, "a replacement does not repeat the random numbers of the dead");
    assert!(first.2.is_some());
    assert_eq!((first.0, first.3, second.3), (Some(0), 1, 1));
}

#[test]
fn workers_of_one_pool_have_different_seeds() {
    let pool = pool(2);
    let gate = Gate::new();
    let seed_at_gate =
        |pass: brigade_testkit::Pass| (brigade_testkit::pass(pass), worker::seed()).1;
    let handles = [1, 2].map(|number| pool.submit(seed_at_gate, gate.pass(number)).unwrap());
    gate.wait_for_arrivals(2);
    gate.open();
    let [one, two] = handles.map(|handle| outcome(handle).unwrap());
    assert_ne!(one, two);
}

#[test]
fn a_worker_that_died_is_replaced() {
    let pool = pool(1);
    let before = outcome(pool.submit(pid_of_worker, ()).unwrap()).unwrap();
    let (dead, _) = worker_died(outcome(pool.submit(aborts, ()).unwrap()));
    assert_eq!(dead, before);
    assert_ne!(outcome(pool.submit(pid_of_worker, ()).unwrap()).unwrap(), before);
    assert_eq!(pool.worker_restarts(), 1);
    wait_until("the dead worker to be reaped", BOUND, || !processes::children().contains(&before));
}

#[test]
fn ten_threads_share_a_pool() {
    let pool = pool(2);
    thread::scope(|scope| {
        for thread in 0..10_u64 {
            let pool = &pool;
            scope.spawn(move || {
                for number in 0..100 {
                    let sent =
                        vec![u8::try_from(thread).unwrap(); usize::try_from(number).unwrap()];
                    let handle = pool.submit(echoes, sent.clone()).unwrap();
                    assert_eq!(outcome(handle).unwrap(), sent);
                }
            });
        }
    });
}

#[test]
fn pools_live_side_by_side() {
    let pools: Vec<Pool> = (0..4).map(|_| pool(1)).collect();
    let handles: Vec<_> =
        pools.iter().map(|pool| pool.submit(pid_of_worker, ()).unwrap()).collect();
    let pids: BTreeSet<u32> = handles.into_iter().map(|handle| outcome(handle).unwrap()).collect();
    assert_eq!(pids.len(), pools.len());
}

#[test]
fn a_task_may_use_a_pool_of_its_own() {
    fn sum_of_squares(up_to: u64) -> u64 {
        let inner = pool(1);
        inner.map(square, 0..up_to).map(Result::unwrap).sum()
    }
    let pool = pool(1);
    assert_eq!(outcome(pool.submit(sum_of_squares, 10).unwrap()).unwrap(), 285);
}

#[test]
fn a_handle_shows_its_state_and_yields_its_outcome_once() {
    let pool = pool(1);
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(3)).unwrap();
    assert!(handle.try_get().is_none());
    assert!(handle.wait_timeout(std::time::Duration::from_millis(1)).is_none());
    gate.open();
    wait_until("the task to be done", BOUND, || handle.is_done());
    assert_eq!(handle.try_get().unwrap().unwrap(), 3);
    assert!(handle.try_get().is_none(), "the outcome is taken once");
    assert!(handle.is_done());
}

#[test]
fn dropping_a_handle_lets_its_task_run() {
    let pool = pool(1);
    let gate = Gate::new();
    drop(pool.submit(pass, gate.pass(1)).unwrap());
    gate.wait_for_arrivals(1);
    gate.open();
    assert_eq!(outcome(pool.submit(sleeps, 1).unwrap()).unwrap(), 1);
}

#[test]
fn a_pool_is_known_by_its_name() {
    let pool = builder(1).name("resize").build().unwrap();
    assert_eq!(pool.name(), "resize");
    assert!(format!("{pool:?}").contains("resize"));
}

#[test]
fn invalid_settings_are_errors_that_name_them() {
    let zero = std::time::Duration::ZERO;
    for (builder, name) in [
        (builder(0), "workers"),
        (builder(1 << 20), "workers"),
        (builder(1).queue_limit(0), "queue_limit"),
        (builder(1).start_timeout(zero), "start_timeout"),
        (builder(1).restart_budget(1, zero), "restart_budget"),
        (builder(1).message_limit(0), "message_limit"),
    ] {
        match builder.build() {
            Err(PoolError::Configuration { field, .. }) => assert_eq!(field, name),
            other => panic!("{name}: {other:?}"),
        }
    }
}
