//! Maps and `as_completed` that wait for a limited time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brigade::{Shutdown, as_completed};
use brigade_integration::{picky, pool, square};
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass, wait_until};

const SMALL: Duration = Duration::from_millis(50);

/// A timeout that is ignored ends the test.
fn watch() -> Watchdog {
    Watchdog::new("a wait for a limited time", BOUND)
}

#[test]
fn a_map_in_time_is_a_map_without_a_limit() {
    let _watchdog = watch();
    let pool = pool(2);
    for limit in [BOUND, Duration::MAX] {
        let results = pool.map(square, 0..1_000).timeout(limit);
        let values: Result<Vec<u64>, _> = results.map(|result| result.unwrap()).collect();
        assert_eq!(values.unwrap(), (0..1_000).map(square).collect::<Vec<_>>());
        let items = pool.map_unordered(picky, 0..100).timeout(limit).map(Result::unwrap);
        assert_eq!(items.flatten().count(), 84);
        assert!(pool.map(square, Vec::new()).timeout(limit).next().is_none());
    }
}

#[test]
fn a_map_that_is_late_counts_what_it_waits_for() {
    let _watchdog = watch();
    let pool = pool(2);
    let (open, gate) = (Gate::new(), Gate::new());
    open.open();
    let inputs: Vec<_> = (0..10).map(|n| if n < 7 { open.pass(n) } else { gate.pass(n) }).collect();
    let mut results = pool.map(pass, inputs.clone()).chunk(1);
    for number in 0..7 {
        assert_eq!(results.next().unwrap().unwrap(), number);
    }
    let mut results = results.timeout(SMALL);
    let error = results.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "timed out waiting for 3 of 10 tasks");
    assert!(results.next().is_none(), "the error is the last item");
    // The map goes on without the limit.
    gate.open();
    let rest: Vec<u64> = results.into_inner().map(Result::unwrap).collect();
    assert_eq!(rest, [7, 8, 9]);
    let rest = pool.map_unordered(pass, inputs).with_inputs().timeout(BOUND);
    assert_eq!(rest.map(|item| item.unwrap().1.unwrap()).sum::<u64>(), 45);
}

#[test]
fn results_that_have_arrived_come_before_the_error() {
    let _watchdog = watch();
    let pool = pool(2);
    let (open, gate) = (Gate::new(), Gate::new());
    open.open();
    // Of an unknown number, as far as the map can tell.
    let inputs =
        (0..).map_while(|n| (n < 5).then(|| if n == 2 { gate.pass(n) } else { open.pass(n) }));
    let mut results = pool.map_unordered(pass, inputs).chunk(1).indexed();
    let mut seen = vec![results.next().unwrap().0];
    let mut results = results.timeout(SMALL);
    let error = loop {
        match results.next().unwrap() {
            Ok((index, result)) => seen.push(result.map(|_| index).unwrap()),
            Err(error) => break error,
        }
    };
    assert!(!seen.contains(&2));
    assert_eq!((error.pending, error.total), (5 - seen.len(), 5));
    gate.open();
    seen.extend(results.into_inner().map(|(index, _)| index));
    seen.sort_unstable();
    assert_eq!(seen, [0, 1, 2, 3, 4]);
}

#[test]
fn a_late_map_takes_no_more_inputs() {
    let _watchdog = watch();
    let pool = pool(2);
    let mut results = pool.map(square, 0..).window(1).timeout(Duration::ZERO);
    let error = results.next().unwrap().unwrap_err();
    assert_eq!((error.pending, error.total), (1, 1));
    assert!(results.next().is_none());
    let mut none = pool.map(square, (0..9).filter(|n| *n > 9)).timeout(Duration::ZERO);
    assert!(none.next().is_none(), "a map without inputs has ended");
    pool.shutdown().unwrap();
    assert!(pool.map(square, 0..).timeout(Duration::ZERO).next().unwrap().is_err());
}

#[test]
fn a_full_queue_does_not_outlast_the_limit() {
    let _watchdog = watch();
    let pool = brigade_integration::builder(1).queue_limit(1).build().unwrap();
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    while pool.try_submit(square, 1).is_ok() {}
    let error = pool.map(square, 0..10).timeout(SMALL).next().unwrap().unwrap_err();
    assert_eq!((error.pending, error.total), (10, 10));
    gate.open();
    outcome(held).unwrap();
    pool.shutdown_with(Shutdown::Kill, SMALL).unwrap();
}

#[test]
fn dropping_a_late_map_cancels_what_has_not_begun() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    fn counted(pass: Pass) -> u64 {
        RUNS.fetch_add(1, Ordering::Relaxed);
        brigade_testkit::pass(pass)
    }
    let _watchdog = watch();
    let pool = pool(1);
    let gate = Gate::new();
    let inputs: Vec<_> = (0..20).map(|number| gate.pass(number)).collect();
    for result in pool.map(counted, inputs).chunk(1).timeout(SMALL) {
        assert_eq!(result.unwrap_err().pending, 20);
    }
    gate.open();
    let runs = pool.submit(|(): ()| RUNS.load(Ordering::Relaxed), ()).unwrap();
    assert!(outcome(runs).unwrap() <= 3, "at most one had begun, and one more was sent");
}

#[test]
fn as_completed_ends_with_an_error_when_it_is_late() {
    let _watchdog = watch();
    let pool = pool(2);
    let gate = Gate::new();
    let submit = |number| pool.submit(pass, gate.pass(number)).unwrap();
    let handles = [submit(0), submit(1), pool.submit(square, 3).unwrap()];
    gate.wait_for_arrivals(2);
    assert!(handles[2].cancel());
    let mut completed = as_completed(handles).timeout(SMALL);
    assert!(outcome(completed.next().unwrap().unwrap()).unwrap_err().is_cancelled());
    let error = completed.next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "timed out waiting for 2 of 3 tasks");
    assert!(completed.next().is_none());
    // Its tasks go on.
    gate.open();
    let rest = completed.into_inner().timeout(BOUND);
    let sum: u64 = rest.map(|handle| outcome(handle.unwrap()).unwrap()).sum();
    assert_eq!(sum, 1);
    drop(as_completed([submit(4)]).timeout(Duration::ZERO));
    wait_until("the task of a dropped handle runs", BOUND, || gate.arrivals() == 3);
}
