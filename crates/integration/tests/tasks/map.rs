//! `map` and `map_unordered`: lazy, bounded, ordered or not, and not stopped by an error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brigade_integration::{picky, pool, square};
use brigade_testkit::{Gate, outcome, pass, pause};

#[test]
fn results_come_in_input_order() {
    for workers in [1, 2, 8] {
        let pool = pool(workers);
        for window in [1, 3, 1_000] {
            let results: Vec<u64> =
                pool.map(square, 0..500).window(window).map(Result::unwrap).collect();
            assert_eq!(
                results,
                (0..500).map(square).collect::<Vec<_>>(),
                "{workers} workers, window {window}"
            );
        }
    }
}

#[test]
fn an_empty_input_ends_at_once_and_starts_no_worker() {
    let pool = pool(2);
    assert_eq!(pool.map(square, Vec::new()).count(), 0);
    assert_eq!(pool.map_unordered(square, Vec::new()).count(), 0);
    assert!(pool.worker_pids().is_empty());
}

#[test]
fn inputs_are_taken_lazily_and_never_beyond_the_window() {
    for chunk in [None, Some(1), Some(3)] {
        let pool = pool(2);
        let taken = Cell::new(0);
        let inputs = (0..100).inspect(|_| taken.set(taken.get() + 1));
        let mut results = pool.map(square, inputs).window(7);
        if let Some(chunk) = chunk {
            results = results.chunk(chunk);
        }
        for number in 0..100 {
            if number == 0 {
                assert_eq!(taken.get(), 0, "nothing is taken before the first result is asked for");
            }
            assert_eq!(results.next().unwrap().unwrap(), number * number);
            assert!(
                taken.get() > number && taken.get() <= number + 7,
                "{} at {number}",
                taken.get()
            );
        }
        assert!(results.next().is_none());
        assert!(results.next().is_none(), "the end stays the end");
    }
}

#[test]
fn few_results_take_few_inputs_however_fast_the_workers_are() {
    let slow_at_first = |number: u64| {
        if number == 0 {
            pause(Duration::from_millis(200));
        }
        number
    };
    let pool = pool(2);
    let taken = Cell::new(0);
    let inputs = (0..).inspect(|_| taken.set(taken.get() + 1));
    let mut results = pool.map(slow_at_first, inputs);
    for number in 0..10 {
        assert_eq!(results.next().unwrap().unwrap(), number);
        let most = 2 * 8 * 128 + 2 * number;
        assert!(taken.get() <= number + most, "{} inputs at {number}", taken.get());
    }
}

#[test]
fn the_window_of_map_unordered_is_exact_too() {
    for chunk in [1, 3, 50] {
        let pool = pool(2);
        let taken = Cell::new(0);
        let inputs = (0..100).inspect(|_| taken.set(taken.get() + 1));
        let mut results = pool.map_unordered(square, inputs).window(7).chunk(chunk);
        for count in 0..100 {
            results.next().unwrap().unwrap();
            assert!(taken.get() > count && taken.get() <= count + 7, "{} at {count}", taken.get());
        }
        assert!(results.next().is_none());
    }
}

#[test]
fn an_infinite_input_is_allowed() {
    let pool = pool(2);
    let results: Vec<u64> = pool.map(square, 0..).take(300).map(Result::unwrap).collect();
    assert_eq!(results, (0..300).map(square).collect::<Vec<_>>());
    assert_eq!(pool.map_unordered(square, 0..).take(300).flatten().count(), 300);
}

#[test]
fn a_panic_of_the_input_reaches_the_caller_only() {
    let pool = pool(2);
    for at in [0, 5, 20] {
        let inputs = (0..=20_u64).inspect(move |number| assert_ne!(*number, at, "no more inputs"));
        let taken = AssertUnwindSafe(|| {
            pool.map(square, inputs).window(4).map(Result::unwrap).collect::<Vec<_>>()
        });
        assert!(catch_unwind(taken).is_err());
        assert_eq!(outcome(pool.submit(square, 3).unwrap()).unwrap(), 9);
    }
}

#[test]
fn an_error_keeps_its_position_and_the_rest_follows() {
    let pool = pool(2);
    let results: Vec<_> = pool.map(picky, 0..100).collect();
    assert_eq!(results.len(), 100);
    for (number, result) in (0..).zip(results) {
        match result {
            Ok(result) => assert_eq!(result, number),
            Err(error) if number % 7 == 0 => assert!(error.is_panic(), "{error}"),
            Err(error) => assert!(number == 50 && error.is_worker_death(), "{number}: {error}"),
        }
    }
}

#[test]
fn map_unordered_yields_everything_once() {
    let pool = pool(2);
    let (mut values, mut panics, mut deaths) = (Vec::new(), 0, 0);
    for result in pool.map_unordered(picky, 0..1_000) {
        match result {
            Ok(number) => values.push(number),
            Err(error) if error.is_panic() => panics += 1,
            Err(error) => deaths += u64::from(error.is_worker_death()),
        }
    }
    values.sort_unstable();
    let expected: Vec<u64> = (0..1_000).filter(|number| number % 7 != 0 && *number != 50).collect();
    assert_eq!(values, expected);
    assert_eq!((panics, deaths), (143, 1));
}

#[test]
fn a_slow_task_holds_up_the_ordered_map_only() {
    let pool = pool(2);
    let gate = Gate::new();
    let slow_zero = |(number, pass): (u64, brigade_testkit::Pass)| {
        if number == 0 { brigade_testkit::pass(pass) } else { number }
    };
    let inputs = (0..50).map(|number| (number, gate.pass(number)));
    let mut results = pool.map_unordered(slow_zero, inputs);
    let mut others: Vec<u64> = results.by_ref().take(49).map(Result::unwrap).collect();
    others.sort_unstable();
    assert_eq!(others, (1..50).collect::<Vec<_>>());
    gate.open();
    assert_eq!(results.next().unwrap().unwrap(), 0);
    assert!(results.next().is_none());
}

#[test]
fn dropping_a_map_cancels_tasks_that_have_not_begun() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    fn run_at(pass: brigade_testkit::Pass) -> u64 {
        RUNS.fetch_add(1, Ordering::Relaxed);
        brigade_testkit::pass(pass)
    }
    for ordered in [true, false] {
        let pool = pool(1);
        let (open, gate) = (Gate::new(), Gate::new());
        open.open();
        // The first goes through, the second stops, and the rest waits behind it.
        let inputs =
            (0..50).map(|number| if number == 0 { open.pass(0) } else { gate.pass(number) });
        if ordered {
            let mut results = pool.map(run_at, inputs).window(20);
            assert_eq!(results.next().unwrap().unwrap(), 0);
        } else {
            let mut results = pool.map_unordered(run_at, inputs).window(20);
            assert_eq!(results.next().unwrap().unwrap(), 0);
        }
        gate.open();
        let runs =
            outcome(pool.submit(|(): ()| RUNS.load(Ordering::Relaxed), ()).unwrap()).unwrap();
        // At most one had begun when the map was dropped, and one more was prefetched.
        assert!((1..=3).contains(&runs), "{runs} tasks ran");
    }
}

#[test]
fn nothing_of_a_dropped_map_appears_in_the_next() {
    let pool = pool(2);
    for round in 0..30 {
        let begin = 1_000_000 * round;
        let taken = usize::try_from(round).unwrap() * 7;
        let first: Vec<u64> =
            pool.map(|number: u64| number, begin..).take(taken).map(Result::unwrap).collect();
        assert_eq!(first, (begin..).take(taken).collect::<Vec<_>>());
        let mut numbers: Vec<u64> = pool
            .map_unordered(|number: u64| number, begin + 500_000..begin + 500_100)
            .map(Result::unwrap)
            .collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (begin + 500_000..begin + 500_100).collect::<Vec<_>>());
    }
}

#[test]
fn maps_may_run_side_by_side_on_one_pool() {
    let pool = pool(2);
    let pairs = pool.map(square, 0..300).zip(pool.map_unordered(square, 0..300));
    let (ordered, unordered): (Vec<u64>, Vec<u64>) =
        pairs.map(|(one, two)| (one.unwrap(), two.unwrap())).unzip();
    assert_eq!(ordered.iter().sum::<u64>(), unordered.iter().sum::<u64>());
    let gate = Gate::new();
    let held = pool.submit(pass, gate.pass(1)).unwrap();
    gate.wait_for_arrivals(1);
    assert_eq!(pool.map(square, 0..10).map(Result::unwrap).sum::<u64>(), 285);
    gate.open();
    outcome(held).unwrap();
}

#[test]
fn retries_apply_to_each_item_of_a_map() {
    fn dies_at_first(number: u64) -> u64 {
        if number.is_multiple_of(10) && brigade_integration::attempt() == 1 {
            std::process::abort();
        }
        number
    }
    let pool = pool(2);
    let results: Vec<u64> =
        pool.map(dies_at_first, 0..100).retries(1).map(Result::unwrap).collect();
    assert_eq!(results, (0..100).collect::<Vec<_>>());
    assert_eq!(pool.map_unordered(dies_at_first, 0..100).retries(1).flatten().count(), 100);
}
