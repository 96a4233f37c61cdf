//! Results of maps with the positions of their inputs, or with the inputs.

use brigade::{TaskError, TaskErrorKind};
use brigade_integration::{picky, pool, square};
use brigade_testkit::faults::sleeps;
use brigade_testkit::{BOUND, Gate, Watchdog, pass};
use futures::StreamExt;
use futures::executor::block_on;

/// An input that fails to be encoded if its number is a multiple of three. It is no `Clone`.
#[derive(serde::Serialize, serde::Deserialize)]
struct Fussy(#[serde(serialize_with = "some")] u64);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn some<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match number % 3 {
        0 => Err(serde::ser::Error::custom("a multiple of three")),
        _ => serializer.serialize_u64(*number),
    }
}

/// Checks the outcome of [`picky`], and that an error names the item.
#[track_caller]
fn check_picky(index: u64, result: Result<u64, TaskError>) {
    match result {
        Ok(value) => assert_eq!(value, index),
        Err(error) => {
            assert!(error.is_panic() == index.is_multiple_of(7), "{index}: {error}");
            assert!(error.is_worker_death() == (index == 50), "{index}: {error}");
            assert_eq!(error.index(), usize::try_from(index).ok());
            assert!(error.to_string().contains(&format!(", item {index}")), "{error}");
        }
    }
}

#[test]
fn each_result_has_the_position_of_its_input() {
    let pool = pool(2);
    let as_u64 = |index: usize| u64::try_from(index).unwrap();
    for chunk in [None, Some(1), Some(30)] {
        let mut unordered = pool.map_unordered(picky, 0..500);
        let mut ordered = pool.map(picky, 0..500);
        if let Some(chunk) = chunk {
            (unordered, ordered) = (unordered.chunk(chunk), ordered.chunk(chunk));
        }
        let mut seen = [false; 500];
        for (index, result) in unordered.indexed() {
            check_picky(as_u64(index), result);
            assert!(!std::mem::replace(&mut seen[index], true), "{index} came twice");
        }
        assert_eq!(seen, [true; 500]);
        for (expected, (index, result)) in ordered.indexed().enumerate() {
            assert_eq!(index, expected);
            check_picky(as_u64(index), result);
        }
    }
}

fn judge((number, text): (u64, String)) -> (u64, usize) {
    (picky(number), text.len())
}

#[test]
fn each_result_comes_with_its_input() {
    let pool = pool(2);
    let texts = |number: u64| (number, format!("text {number}"));
    let mut numbers = Vec::new();
    for ((number, text), result) in
        pool.map_unordered(judge, (0..300).map(texts)).window(40).with_inputs()
    {
        assert_eq!(text, texts(number).1);
        let value = result.map(|(value, length)| {
            assert_eq!(length, text.len());
            value
        });
        check_picky(number, value);
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<_>>());
    let inputs = pool.map(judge, (0..300).map(texts)).with_inputs().map(|((number, _), _)| number);
    assert_eq!(inputs.collect::<Vec<_>>(), (0..300).collect::<Vec<_>>());
}

#[test]
fn inputs_that_are_never_sent_are_named_as_well() {
    let pool = pool(2);
    for (Fussy(number), result) in
        pool.map_unordered(|Fussy(number)| number, (0..100).map(Fussy)).with_inputs()
    {
        match result {
            Ok(value) => assert_eq!(value, number),
            Err(error) => {
                assert!(number.is_multiple_of(3), "{error}");
                assert_eq!(error.index(), usize::try_from(number).ok());
            }
        }
    }
    pool.shutdown().unwrap();
    let refused: Vec<_> = pool.map(square, 0..3).with_inputs().collect();
    assert_eq!(refused.len(), 3);
    for (expected, (input, result)) in (0..).zip(refused) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), &TaskErrorKind::PoolClosed);
        assert_eq!((input, error.index()), (expected, usize::try_from(expected).ok()));
    }
}

fn slow_at_times(number: u64) -> u64 {
    if number.is_multiple_of(40) {
        sleeps(20);
    }
    number
}

#[test]
fn items_that_a_worker_returns_keep_their_positions() {
    let _watchdog = Watchdog::new("a map whose chunks are divided", BOUND);
    let pool = pool(2);
    for (input, result) in pool.map_unordered(slow_at_times, 0..2_000).with_inputs() {
        assert_eq!(result.unwrap(), input);
    }
}

#[test]
fn a_stream_has_positions_and_inputs_too() {
    let pool = pool(2);
    let (open, gate) = (Gate::new(), Gate::new());
    open.open();
    let inputs = (0..3).map(|number| if number == 0 { gate.pass(0) } else { open.pass(number) });
    let mut results = pool.map_unordered(pass, inputs).chunk(1).indexed().into_stream();
    let mut next = || block_on(results.next()).map(|(index, result)| (index, result.unwrap()));
    let mut early = [next(), next()];
    early.sort_unstable();
    assert_eq!(early, [Some((1, 1)), Some((2, 2))]);
    gate.open();
    assert_eq!([next(), next()], [Some((0, 0)), None]);
    let squares = pool.map(square, 0..5).with_inputs().into_stream();
    let squares: Vec<_> = block_on(squares.map(|(input, it)| (input, it.unwrap())).collect());
    assert_eq!(squares, [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]);
}

#[test]
fn a_task_that_is_no_item_has_no_position() {
    let pool = pool(1);
    let error = pool.submit(picky, 7).unwrap().wait().unwrap_err();
    assert_eq!(error.index(), None);
    assert!(!error.to_string().contains("item"), "{error}");
}
