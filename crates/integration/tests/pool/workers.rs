//! The number and lifetime of workers, and the assignment of tasks to them.

use std::time::Duration;

use brigade::{Pool, PoolError, Shutdown, worker};
use brigade_integration::{builder, pool};
use brigade_testkit::faults::{aborts, echoes};
use brigade_testkit::{BOUND, Gate, outcome, pass, wait_until};

fn pid((): ()) -> u32 {
    std::process::id()
}

fn pids(pool: &Pool) -> Vec<u32> {
    let mut pids = pool.worker_pids();
    pids.sort_unstable();
    pids
}

#[test]
fn min_workers_run_without_any_task() {
    let pool = builder(3).min_workers(2).build().unwrap();
    wait_until("two workers", BOUND, || pool.worker_pids().len() == 2);
}

#[test]
fn a_short_idle_timeout_stops_workers_and_loses_no_task() {
    let pool = builder(2).idle_timeout(Duration::from_millis(1)).build().unwrap();
    for round in 0..50_u8 {
        let handles: Vec<_> = (0..4).map(|_| pool.submit(echoes, vec![round]).unwrap()).collect();
        for handle in handles {
            assert_eq!(outcome(handle).unwrap(), [round]);
        }
    }
    wait_until("all workers to leave", BOUND, || pool.worker_pids().is_empty());
    assert_eq!(outcome(pool.submit(echoes, vec![1]).unwrap()).unwrap(), [1]);
}

#[test]
fn no_worker_is_started_while_one_is_idle() {
    let pool = pool(4);
    let first = outcome(pool.submit(pid, ()).unwrap()).unwrap();
    for _ in 0..50 {
        assert_eq!(outcome(pool.submit(pid, ()).unwrap()).unwrap(), first);
    }
    assert_eq!(pool.worker_pids(), [first]);
}

#[test]
fn resize_under_load_keeps_the_remaining_processes() {
    let pool = pool(4);
    pool.warm_up().unwrap();
    let before = pids(&pool);
    let gate = Gate::new();
    let running: Vec<_> = (0..4).map(|n| pool.submit(pass, gate.pass(n)).unwrap()).collect();
    gate.wait_for_arrivals(4);
    pool.resize(2).unwrap();
    assert_eq!(pool.workers(), 2);
    gate.open();
    for handle in running {
        outcome(handle).unwrap();
    }
    wait_until("two workers to leave", BOUND, || pool.worker_pids().len() == 2);
    let kept = pids(&pool);
    assert!(kept.iter().all(|pid| before.contains(pid)));
    pool.resize(3).unwrap();
    pool.warm_up().unwrap();
    let after = pids(&pool);
    assert_eq!(after.len(), 3);
    assert!(kept.iter().all(|pid| after.contains(pid)));
    for _ in 0..50 {
        for workers in [1, 4, 2] {
            pool.resize(workers).unwrap();
            assert_eq!(outcome(pool.submit(echoes, vec![5]).unwrap()).unwrap(), [5]);
        }
    }
    assert!(matches!(pool.resize(0), Err(PoolError::Configuration { field: "resize", .. })));
    pool.shutdown().unwrap();
    assert!(matches!(pool.resize(2), Err(PoolError::Closed)));
}

#[test]
fn a_quiesced_pool_has_no_processes_until_the_next_task() {
    let pool = builder(2).min_workers(2).build().unwrap();
    for _ in 0..3 {
        pool.warm_up().unwrap();
        pool.quiesce().unwrap();
        assert_eq!(pool.worker_pids(), [0_u32; 0]);
        assert_eq!(outcome(pool.submit(echoes, vec![6]).unwrap()).unwrap(), [6]);
    }
}

#[test]
fn quiesce_stops_a_busy_worker_once_it_has_finished() {
    let pool = pool(2);
    pool.warm_up().unwrap();
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    pool.quiesce().unwrap();
    assert_eq!(pool.worker_pids().len(), 1, "one runs a task");
    gate.open();
    outcome(running).unwrap();
    wait_until("the last worker to leave", BOUND, || pool.worker_pids().is_empty());
}

#[test]
fn the_longest_durations_are_no_limits() {
    let max = Duration::MAX;
    let pool = builder(2)
        .stop_grace(max)
        .start_timeout(max)
        .idle_timeout(max)
        .max_worker_age(max)
        .restart_budget(3, max)
        .deadline(max)
        .soft_deadline(max)
        .queue_deadline(max)
        .build()
        .unwrap();
    pool.warm_up().unwrap();
    let task = pool.task(echoes).deadline(max).soft_deadline(max).queue_deadline(max);
    assert_eq!(outcome(task.submit(vec![1]).unwrap()).unwrap(), [1]);
    assert!(outcome(pool.submit(aborts, ()).unwrap()).is_err());
    assert_eq!(outcome(pool.submit(echoes, vec![2]).unwrap()).unwrap(), [2]);
    pool.shutdown_with(Shutdown::Drain, max).unwrap();
}

#[test]
fn recycling_by_task_count_loses_no_queued_task() {
    for (tasks, workers, most) in [(1, 2, 6), (2, 2, 8), (3, 1, 9)] {
        let pool = builder(workers).max_tasks_per_worker(most / 2).build().unwrap();
        let handles: Vec<_> = (0..20 * tasks).map(|_| pool.submit(pid, ()).unwrap()).collect();
        let mut counts = std::collections::HashMap::<u32, u64>::new();
        for handle in handles {
            *counts.entry(outcome(handle).unwrap()).or_default() += 1;
        }
        assert!(counts.values().all(|count| *count <= most / 2), "{counts:?}");
        pool.shutdown().unwrap();
    }
}

#[test]
fn a_worker_runs_at_most_max_tasks_per_worker() {
    let pool = builder(1).max_tasks_per_worker(3).build().unwrap();
    let pids: Vec<u32> = (0..4).map(|_| outcome(pool.submit(pid, ()).unwrap()).unwrap()).collect();
    assert!(pids[0] == pids[1] && pids[1] == pids[2] && pids[2] != pids[3], "{pids:?}");
    let items: Vec<u32> = pool.map(pid, [(); 8]).collect::<Result<_, _>>().unwrap();
    assert_eq!(items[2..5], [items[2]; 3]);
    assert_ne!(items[4], items[5]);
}

#[test]
fn large_or_old_workers_are_recycled_without_losing_a_task() {
    fn leaks(bytes: usize) -> u32 {
        std::mem::forget(std::hint::black_box(vec![1_u8; bytes]));
        std::process::id()
    }
    let pool = builder(1).max_worker_rss(64 << 20).build().unwrap();
    let pids: std::collections::HashSet<u32> =
        (0..20).map(|_| outcome(pool.submit(leaks, 16 << 20).unwrap()).unwrap()).collect();
    assert!((3..=15).contains(&pids.len()), "{pids:?}");

    let pool = builder(1).max_worker_age(Duration::from_millis(20)).build().unwrap();
    let first = outcome(pool.submit(pid, ()).unwrap()).unwrap();
    wait_until("the worker to be replaced", BOUND, || {
        outcome(pool.submit(pid, ()).unwrap()).unwrap() != first
    });
}

#[test]
fn a_broadcast_runs_once_in_each_worker() {
    let pool = pool(4);
    for _ in 0..3 {
        let handles = pool.broadcast(|(): ()| worker::slot().unwrap(), ()).unwrap();
        let slots: Vec<u32> = handles.into_iter().map(|handle| outcome(handle).unwrap()).collect();
        assert_eq!(slots, [0, 1, 2, 3]);
        // Each of them is replaced, and the next broadcast runs in the replacements.
        for slot in 0..2 {
            let crashing = pool.submit(aborts, ()).unwrap();
            outcome(crashing).unwrap_err();
            let _ = slot;
        }
    }
}

#[test]
fn a_broadcast_waits_for_busy_workers() {
    let pool = pool(2);
    let gate = Gate::new();
    let busy = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let mut handles = pool.broadcast(pid, ()).unwrap();
    wait_until("the free worker to answer", BOUND, || {
        handles.iter().filter(|handle| handle.is_done()).count() == 1
    });
    gate.open();
    outcome(busy).unwrap();
    let second = outcome(handles.pop().unwrap()).unwrap();
    assert_ne!(second, outcome(handles.pop().unwrap()).unwrap());
}

#[test]
fn higher_priorities_run_first_and_equal_ones_in_order() {
    let pool = pool(1);
    let folder = tempfile::TempDir::new().unwrap();
    let journal = folder.path().join("journal");
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let handles: Vec<_> = [0, 5, -3, 5, 0, 9]
        .into_iter()
        .enumerate()
        .map(|(number, priority)| {
            let task = pool.task(|(journal, number): (std::path::PathBuf, usize)| {
                use std::io::Write;
                let file = std::fs::OpenOptions::new().create(true).append(true).open(journal);
                writeln!(file.unwrap(), "{number}").unwrap();
            });
            task.priority(priority).submit((journal.clone(), number)).unwrap()
        })
        .collect();
    gate.open();
    outcome(first).unwrap();
    for handle in handles {
        outcome(handle).unwrap();
    }
    let order = std::fs::read_to_string(journal).unwrap();
    assert_eq!(order.split_whitespace().collect::<Vec<_>>(), ["5", "1", "3", "0", "4", "2"]);
}

#[test]
fn invalid_settings_are_named() {
    let field = |builder: brigade::PoolBuilder| match builder.build() {
        Err(PoolError::Configuration { field, problem }) => {
            assert!(!problem.is_empty());
            field
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(field(builder(2).min_workers(3)), "min_workers");
    assert_eq!(field(builder(2).max_tasks_per_worker(0)), "max_tasks_per_worker");
    assert_eq!(field(builder(2).max_worker_age(Duration::ZERO)), "max_worker_age");
    assert_eq!(field(builder(2).max_worker_rss(0)), "max_worker_rss");
    assert_eq!(field(builder(2).quarantine_after(0)), "quarantine_after");
    assert_eq!(field(builder(2).deadline(Duration::ZERO)), "deadline");
}

#[test]
fn a_task_that_keeps_killing_workers_is_quarantined() {
    let pool = builder(1).quarantine_after(3).build().unwrap();
    let error = outcome(pool.task(aborts).retries(100).submit(()).unwrap()).unwrap_err();
    assert!(error.is_quarantined() && error.is_worker_death(), "{error:?}");
    assert_eq!(error.attempt(), 3);
    assert!(error.to_string().contains("quarantined"), "{error}");
}
