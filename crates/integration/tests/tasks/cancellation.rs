//! A task can be cancelled until the very moment that a worker begins it, and never after.

use std::sync::atomic::{AtomicU64, Ordering};

use brigade::TaskState;
use brigade_integration::pool;
use brigade_testkit::faults::panics_with_str;
use brigade_testkit::{BOUND, Gate, outcome, pass, wait_until};

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Counts the tasks of this worker.
fn run((): ()) {
    RUNS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the count of this worker.
fn runs((): ()) -> u64 {
    RUNS.load(Ordering::Relaxed)
}

#[test]
fn a_queued_task_can_be_cancelled() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let queued = pool.submit(run, ()).unwrap();
    assert_eq!(queued.state(), TaskState::Queued);
    assert!(queued.cancel());
    assert_eq!(queued.state(), TaskState::Cancelled);
    assert!(queued.is_done());
    assert!(queued.cancel(), "it still is cancelled");
    assert!(outcome(queued).unwrap_err().is_cancelled());
    gate.open();
    assert_eq!(outcome(first).unwrap(), 1);
    assert_eq!(outcome(pool.submit(runs, ()).unwrap()).unwrap(), 0);
}

#[test]
fn a_running_task_cannot_be_cancelled() {
    let pool = pool(1);
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    assert_eq!(running.state(), TaskState::Running);
    assert!(!running.cancel());
    assert_eq!(running.state(), TaskState::Running);
    gate.open();
    wait_until("the task to be done", BOUND, || running.is_done());
    assert_eq!(running.state(), TaskState::Done);
    assert!(!running.cancel());
    assert_eq!(outcome(running).unwrap(), 1);
}

#[test]
fn a_task_that_failed_says_so_and_keeps_its_outcome() {
    let pool = pool(1);
    let failed = pool.submit(panics_with_str, ()).unwrap();
    wait_until("the task to fail", BOUND, || failed.is_done());
    assert_eq!(failed.state(), TaskState::Failed);
    assert!(format!("{failed:?}").contains("state: Failed"), "{failed:?}");
    assert!(!failed.cancel());
    assert!(outcome(failed).unwrap_err().is_panic());
}

#[test]
fn a_cancelled_prefetched_task_never_begins() {
    let pool = pool(1);
    // Enough short tasks for the pool to expect short ones and to prefetch.
    for result in pool.map(run, std::iter::repeat_n((), 500)) {
        result.unwrap();
    }
    let gate = Gate::new();
    let running = pool.submit(pass, gate.pass(1)).unwrap();
    let in_advance: Vec<_> = (0..100).map(|_| pool.submit(run, ()).unwrap()).collect();
    gate.wait_for_arrivals(1);
    assert!(in_advance.iter().all(|handle| handle.state() == TaskState::Queued));
    assert!(in_advance.iter().all(brigade::Handle::cancel));
    gate.open();
    outcome(running).unwrap();
    for handle in in_advance {
        assert!(outcome(handle).unwrap_err().is_cancelled());
    }
    assert_eq!(outcome(pool.submit(runs, ()).unwrap()).unwrap(), 500);
}

#[test]
fn cancel_is_exact_when_it_races_with_the_start() {
    let pool = pool(2);
    let mut expected = 0;
    for _ in 0..2_000 {
        let handle = pool.submit(run, ()).unwrap();
        let cancelled = handle.cancel();
        let outcome = outcome(handle);
        assert_eq!(
            cancelled,
            outcome.as_ref().is_err_and(brigade::TaskError::is_cancelled),
            "{outcome:?}"
        );
        expected += u64::from(outcome.is_ok());
    }
    // Each worker reports its count, because the gate keeps the first one busy.
    let gate = Gate::new();
    let at_gate = |pass: brigade_testkit::Pass| (brigade_testkit::pass(pass), runs(())).1;
    let both = [1, 2].map(|number| pool.submit(at_gate, gate.pass(number)).unwrap());
    gate.wait_for_arrivals(2);
    gate.open();
    assert_eq!(both.map(|handle| outcome(handle).unwrap()).iter().sum::<u64>(), expected);
}

#[test]
fn cancelled_tasks_make_room_for_the_next() {
    let pool = pool(1);
    let gate = Gate::new();
    let first = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    let doomed: Vec<_> = (0..1_000).map(|_| pool.submit(run, ()).unwrap()).collect();
    let last = pool.submit(runs, ()).unwrap();
    assert!(doomed.iter().all(brigade::Handle::cancel));
    gate.open();
    assert_eq!((outcome(first).unwrap(), outcome(last).unwrap()), (1, 0));
}
