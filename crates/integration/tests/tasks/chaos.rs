//! Workers are killed at random all the time; tasks do not notice, or report exactly what happened.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use brigade::{Exit, Handle, Pool};
use brigade_integration::{builder, worker_died};
use brigade_testkit::faults::spins;
use brigade_testkit::{
    BOUND, Random, Watchdog, outcome, pause, processes, repetitions, wait_until,
};

const TASKS: u64 = 5_000;

/// Microseconds of work in each task.
const WORK: u64 = 200;

fn chaos_pool() -> Pool {
    // A worker may be hit before its first task, again and again, and a task that takes long may
    // lose more workers than the default quarantine allows.
    builder(2)
        .restart_budget(u32::MAX, Duration::from_secs(60))
        .quarantine_after(u32::MAX)
        .build()
        .unwrap()
}

/// Kills without an outcome in between, after which the killer waits for one. On a busy machine a
/// worker takes longer to start than it would live.
const KILLS_WITHOUT_OUTCOME: u32 = 10;

/// Kills a worker every few milliseconds while `body` runs, which counts the outcomes. Returns the
/// pids and the value of `body`.
fn amid_kills<R>(pool: &Pool, body: impl FnOnce(&AtomicUsize) -> R) -> (BTreeSet<u32>, R) {
    let seed = Random::seed_from("BRIGADE_TEST_SEED");
    let watchdog = Watchdog::new(format!("tasks amid kills; BRIGADE_TEST_SEED={seed}"), 2 * BOUND);
    let done = AtomicBool::new(false);
    let outcomes = AtomicUsize::new(0);
    thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut random = Random::new(seed);
            let mut killed = BTreeSet::new();
            let (mut kills, mut known) = (0, 0);
            while !done.load(Ordering::Acquire) {
                let before = std::mem::replace(&mut known, outcomes.load(Ordering::Acquire));
                kills += 1;
                if known != before {
                    kills = 0;
                    watchdog.progress();
                }
                if kills == KILLS_WITHOUT_OUTCOME {
                    wait_until("an outcome after many kills", BOUND, || {
                        outcomes.load(Ordering::Acquire) != known || done.load(Ordering::Acquire)
                    });
                }
                pause(Duration::from_millis(random.within(2..8)));
                let pids = pool.worker_pids();
                if !pids.is_empty() {
                    let pid = *random.choose(&pids);
                    if processes::hit_child(pid, processes::Signal::KILL) {
                        killed.insert(pid);
                    }
                }
            }
            killed
        });
        let result = {
            let _done = SetAtEnd(&done);
            body(&outcomes)
        };
        (killer.join().unwrap(), result)
    })
}

/// Ends the killer even if `body` panics; else the scope would wait for it forever.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn with_retries_every_task_succeeds() {
    let pool = chaos_pool();
    let task = pool.task(spins).retries(1_000);
    let (killed, ()) = amid_kills(&pool, |outcomes| {
        // On a busy machine the killer gets fewer turns.
        while pool.worker_restarts() < 10 {
            let submit = |number| task.submit(WORK + number % 7).unwrap();
            let handles: Vec<_> = (0..repetitions(TASKS)).map(submit).collect();
            for (number, handle) in (0..).zip(handles) {
                assert_eq!(outcome(handle).unwrap(), WORK + number % 7);
                outcomes.fetch_add(1, Ordering::Release);
            }
        }
    });
    assert!(killed.len() >= 10, "only {} workers were killed", killed.len());
    assert!(pool.worker_restarts() >= 10);
}

#[test]
fn without_retries_a_kill_costs_at_most_one_task() {
    let pool = chaos_pool();
    let (killed, results) = amid_kills(&pool, |outcomes| {
        let handles: Vec<Handle<u64>> =
            (0..repetitions(TASKS)).map(|_| pool.submit(spins, WORK).unwrap()).collect();
        let counted = handles.into_iter().map(outcome).inspect(|_| {
            outcomes.fetch_add(1, Ordering::Release);
        });
        counted.collect::<Vec<_>>()
    });
    let mut victims = BTreeSet::new();
    for outcome in results.into_iter().filter(Result::is_err) {
        let (pid, exit) = worker_died(outcome);
        assert_eq!(exit, Exit::Signal(9));
        assert!(killed.contains(&pid), "nobody killed {pid}");
        assert!(victims.insert(pid), "{pid} took two tasks with it");
    }
    assert!(!victims.is_empty(), "{} kills hit no task", killed.len());
}

#[test]
fn large_payloads_survive_kills_during_their_transfer() {
    let pool = chaos_pool();
    let task = pool.task(brigade_testkit::faults::echoes).retries(1_000);
    let (killed, ()) = amid_kills(&pool, |outcomes| {
        let handles: Vec<_> =
            (0..60_u8).map(|byte| task.submit(vec![byte; 700_000]).unwrap()).collect();
        for (byte, handle) in (0..).zip(handles) {
            assert!(outcome(handle).unwrap() == vec![byte; 700_000]);
            outcomes.fetch_add(1, Ordering::Release);
        }
    });
    assert!(!killed.is_empty());
}
