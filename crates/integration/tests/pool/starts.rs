//! Starts of workers: spare ones, and a process for each task.

use std::collections::HashSet;
use std::process::id;

use brigade::{Link, Pool, PoolError, TaskState};
use brigade_integration::{builder, square};
use brigade_testkit::{BOUND, Gate, LeakCheck, outcome, pass, wait_until};

fn own_pid((): ()) -> u32 {
    id()
}

fn pid_or_crash(crashes: bool) -> u32 {
    if crashes {
        std::process::abort();
    }
    id()
}

fn links() -> [Link; 2] {
    [Link::Ring, Link::Ipc]
}

fn pids(pool: &Pool) -> usize {
    pool.worker_pids().len()
}

#[test]
fn each_task_has_a_process_of_its_own() {
    for link in links() {
        let check = LeakCheck::new();
        let pool = builder(2).link(link).fresh_process_per_task().build().unwrap();
        let handles: Vec<_> = (0..40).map(|_| pool.submit(own_pid, ()).unwrap()).collect();
        let mut seen: HashSet<u32> = handles.into_iter().map(|it| outcome(it).unwrap()).collect();
        assert_eq!(seen.len(), 40);
        seen.extend(pool.map(own_pid, vec![(); 40]).map(Result::unwrap));
        assert_eq!(seen.len(), 80, "an item of a map is a task, too");
        let retried = pool.task(pid_or_crash).retries(1).submit(true).unwrap();
        assert!(outcome(retried).unwrap_err().is_worker_death());
        let after: Vec<_> = (0..4).map(|_| pool.submit(pid_or_crash, false).unwrap()).collect();
        seen.extend(after.into_iter().map(|it| outcome(it).unwrap()));
        assert_eq!(seen.len(), 84);
        pool.shutdown().unwrap();
        drop(pool);
        check.assert_none(BOUND);
    }
}

#[test]
fn no_more_tasks_run_at_a_time_than_there_are_workers() {
    let pool = builder(1).spare_workers(2).build().unwrap();
    wait_until("two spare workers", BOUND, || pids(&pool) == 2);
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let next = pool.submit(square, 3).unwrap();
    wait_until("two spare workers beside the busy one", BOUND, || pids(&pool) == 3);
    assert_eq!(next.state(), TaskState::Queued);
    gate.open();
    assert_eq!((outcome(held).is_ok(), outcome(next).unwrap()), (true, 9));
    assert_eq!(pool.workers(), 1);
}

#[test]
fn a_spare_worker_takes_over_from_one_that_dies() {
    for link in links() {
        let pool = builder(1).link(link).spare_workers(1).build().unwrap();
        pool.warm_up().unwrap();
        for _ in 0..10 {
            wait_until("both workers", BOUND, || pids(&pool) == 2);
            let before: HashSet<u32> = pool.worker_pids().into_iter().collect();
            assert!(outcome(pool.submit(pid_or_crash, true).unwrap()).is_err());
            let heir = outcome(pool.submit(own_pid, ()).unwrap()).unwrap();
            assert!(before.contains(&heir), "{heir} was started after the death");
        }
    }
}

#[test]
fn all_workers_of_a_broadcast_are_reached() {
    let pool = builder(2).spare_workers(1).build().unwrap();
    let all = pool.broadcast(own_pid, ()).unwrap();
    let all: HashSet<u32> = all.into_iter().map(|it| outcome(it).unwrap()).collect();
    assert_eq!(all.len(), 3);
}

#[test]
fn too_many_spare_workers_are_refused() {
    let error = builder(1).spare_workers(usize::MAX).build().unwrap_err();
    assert!(matches!(error, PoolError::Configuration { field: "spare_workers", .. }), "{error}");
}
