//! Items of a map obey the rules of single tasks: their retries, their queue deadline, the number
//! of workers they may kill, and the counts of a shutdown.

use std::thread;
use std::time::{Duration, Instant};

use brigade::{Shutdown, SubmitErrorKind, TaskError, TaskErrorKind};
use brigade_integration::{attempt, builder};
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass, pause};

/// Item 3 kills every worker; item 5 kills its first two.
fn kills_workers(number: u64) -> u64 {
    if number == 3 || number == 5 && attempt() < 3 {
        std::process::abort();
    }
    number
}

#[test]
fn an_item_that_keeps_killing_workers_is_quarantined() {
    for chunk in [None, Some(4)] {
        let pool = builder(1).quarantine_after(3).build().unwrap();
        let mut results = pool.map(kills_workers, 0..8).retries(100);
        if let Some(chunk) = chunk {
            results = results.chunk(chunk);
        }
        for (number, result) in (0..).zip(results) {
            match result {
                Ok(result) => assert_eq!(result, number),
                Err(error) => {
                    assert_eq!(number, 3, "{error}");
                    assert!(error.is_quarantined() && error.is_worker_death(), "{error:?}");
                    assert_eq!(error.attempt(), 3);
                    assert!(error.to_string().contains("quarantined"), "{error}");
                }
            }
        }
        // Three deaths under item 3, two under item 5.
        assert_eq!(pool.worker_restarts(), 5, "chunks of {chunk:?}");
    }
}

#[test]
fn an_item_without_retries_is_not_reported_as_quarantined() {
    let pool = builder(1).quarantine_after(1).build().unwrap();
    let error = pool.map(kills_workers, [3]).next().unwrap().unwrap_err();
    assert!(error.is_worker_death() && !error.is_quarantined(), "{error:?}");
}

#[test]
fn items_past_their_queue_deadline_fail_together_unretried() {
    const LIMIT: Duration = Duration::from_secs(1);
    let pool = builder(1).queue_deadline(LIMIT).build().unwrap();
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let begin = Instant::now();
    let items = pool.map(|number: u64| number, 0..15).chunk(15).retries(2);
    let errors: Vec<_> = items.map(Result::unwrap_err).collect();
    assert_eq!(errors.len(), 15);
    for error in errors {
        assert!(error.is_queue_deadline(), "{error}");
        assert_eq!(error.attempt(), 1);
    }
    // One after the other, the items of a chunk would wait fifteen times as long.
    assert!(begin.elapsed() < 15 * LIMIT, "{:?}", begin.elapsed());
    gate.open();
    outcome(held).unwrap();
}

/// Passes its gate; then an item that is to kill workers does so, up to this attempt.
fn passes((gate, kills): (Pass, u32)) -> u64 {
    let number = pass(gate);
    if attempt() <= kills {
        std::process::abort();
    }
    number
}

#[test]
fn items_run_again_while_nobody_takes_results() {
    let _watchdog = Watchdog::new("the third attempt of an item", BOUND);
    let pool = builder(1).build().unwrap();
    let (open, gate) = (Gate::new(), Gate::new());
    open.open();
    let inputs = [(open.pass(0), 0), (open.pass(1), 2), (gate.pass(2), 0)];
    let mut results = pool.map(passes, inputs).chunk(3).retries(2);
    assert_eq!(results.next().unwrap().unwrap(), 0);
    // Item 1 kills a second worker, and succeeds at its third attempt.
    gate.wait_for_arrivals(1);
    gate.open();
    assert_eq!(results.map(Result::unwrap).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(pool.worker_restarts(), 2);
}

#[test]
fn items_behind_a_killer_keep_their_queue_deadline() {
    const LIMIT: Duration = Duration::from_millis(300);
    let _watchdog = Watchdog::new("the end of a map", BOUND);
    let pool = builder(1).queue_deadline(LIMIT).build().unwrap();
    let gate = Gate::new();
    let inputs = (0..4).map(|number| (gate.pass(number), u32::from(number == 0)));
    let items = pool.map(passes, inputs).chunk(4).retries(1);
    let results: Vec<_> = thread::scope(|scope| {
        let results = scope.spawn(|| items.collect());
        gate.wait_for_arrivals(1);
        // It waits at least as long as the items do.
        let error = outcome(pool.submit(|(): ()| (), ()).unwrap()).unwrap_err();
        assert!(error.is_queue_deadline(), "{error}");
        gate.open();
        results.join().unwrap()
    });
    let (first, behind) = results.split_first().unwrap();
    assert_eq!(*first.as_ref().unwrap(), 0, "it had begun, so it runs again");
    assert!(behind.iter().all(|it| it.as_ref().is_err_and(TaskError::is_queue_deadline)));
}

#[test]
fn a_drain_runs_every_accepted_item_and_counts_it() {
    let _watchdog = Watchdog::new("a drain", BOUND);
    let pool = builder(1).queue_limit(1).build().unwrap();
    let gate = Gate::new();
    let inputs = (0..5).map(|number| (gate.pass(number), u32::from(number == 2)));
    let items = pool.map(passes, inputs).chunk(5);
    let (results, report) = thread::scope(|scope| {
        let results = scope.spawn(|| items.collect::<Vec<_>>());
        gate.wait_for_arrivals(1);
        let report = scope.spawn(|| pool.shutdown().unwrap());
        let closed = |kind: &SubmitErrorKind| matches!(kind, SubmitErrorKind::PoolClosed);
        while !pool.try_submit(|(): ()| (), ()).is_err_and(|error| closed(error.kind())) {
            thread::yield_now();
        }
        gate.open();
        (results.join().unwrap(), report.join().unwrap())
    });
    for (number, result) in (0..).zip(results) {
        assert_eq!(result.is_err_and(|error| error.is_worker_death()), number == 2);
    }
    // At most one other task had been accepted.
    assert!((4..=5).contains(&report.finished), "{report:?}");
    assert_eq!((report.failed, report.cancelled, report.killed), (1, 0, 0));
}

#[test]
fn a_shutdown_that_cancels_counts_the_items_that_had_not_begun() {
    let _watchdog = Watchdog::new("a shutdown that cancels", BOUND);
    let pool = builder(1).build().unwrap();
    let gate = Gate::new();
    let inputs = (0..6).map(|number| {
        // The six items are one chunk even if the inputs come slowly.
        pause(Duration::from_millis(1));
        (gate.pass(number), u32::from(number == 2))
    });
    let items = pool.map(passes, inputs).chunk(6);
    let (results, report) = thread::scope(|scope| {
        let results = scope.spawn(|| items.collect::<Vec<_>>());
        gate.wait_for_arrivals(1);
        let behind = pool.submit(|(): ()| (), ()).unwrap();
        let report = scope.spawn(|| pool.shutdown_with(Shutdown::CancelPending, BOUND).unwrap());
        assert!(outcome(behind).unwrap_err().is_cancelled());
        gate.open();
        (results.join().unwrap(), report.join().unwrap())
    });
    let kinds: Vec<_> = results.iter().map(|it| it.as_ref().map_err(TaskError::kind)).collect();
    let [Ok(0), Ok(1), Err(TaskErrorKind::WorkerDied { .. }), behind @ ..] = &kinds[..] else {
        panic!("{kinds:?}")
    };
    assert!(behind.iter().all(|it| *it == Err(&TaskErrorKind::Cancelled)), "{behind:?}");
    assert_eq!((report.finished, report.failed, report.cancelled), (2, 1, 3 + 1));
}

#[test]
fn items_of_a_dropped_map_do_not_run_after_their_worker_died() {
    let _watchdog = Watchdog::new("the end of a chunk", BOUND);
    let pool = builder(1).build().unwrap();
    let (open, gate, behind) = (Gate::new(), Gate::new(), Gate::new());
    open.open();
    behind.open();
    let inputs = [(open.pass(0), 0), (open.pass(1), 0), (gate.pass(2), 1), (behind.pass(3), 0)];
    let mut results = pool.map(passes, inputs).chunk(2).retries(5);
    assert_eq!(results.next().unwrap().unwrap(), 0);
    gate.wait_for_arrivals(1);
    drop(results);
    gate.open();
    outcome(pool.submit(|(): ()| (), ()).unwrap()).unwrap();
    assert_eq!(behind.arrivals(), 0);
    assert_eq!(pool.worker_restarts(), 1);
}
