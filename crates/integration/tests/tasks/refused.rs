//! A map whose pool refuses tasks, or whose inputs cannot be encoded, takes no more inputs than it
//! has errors to yield.

use std::cell::Cell;
use std::process::Command;

use brigade::{Pool, Shutdown, TaskError, TaskErrorKind};
use brigade_integration::{builder, pool};
use brigade_testkit::BOUND;

/// A map that takes this many inputs would take all of them, and all memory.
const ENDLESS: usize = 100_000;

const WORKERS: usize = 2;

/// The documented default window, in items.
const DEFAULT_WINDOW: usize = 128 * WORKERS;

fn double(number: u64) -> u64 {
    2 * number
}

/// A value that no serializer accepts.
#[derive(serde::Serialize, serde::Deserialize)]
struct Unsendable(#[serde(serialize_with = "refuse")] u64);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn refuse<S: serde::Serializer>(_: &u64, _: S) -> Result<S::Ok, S::Error> {
    Err(serde::ser::Error::custom("never"))
}

/// The settings of a map.
#[derive(Debug, Clone, Copy)]
struct Shape {
    ordered: bool,
    window: Option<usize>,
    chunk: Option<usize>,
}

fn shapes() -> impl Iterator<Item = Shape> {
    [true, false].into_iter().flat_map(|ordered| {
        let settings = [(None, None), (Some(7), None), (None, Some(5)), (Some(7), Some(5))];
        settings.map(|(window, chunk)| Shape { ordered, window, chunk })
    })
}

/// Runs maps over an endless input that counts the inputs taken.
fn results<'a, A, R>(
    pool: &'a Pool,
    function: impl Fn(A) -> R + Copy + Send + 'static,
    make: fn(u64) -> A,
    taken: &'a Cell<usize>,
    shape: Shape,
) -> Box<dyn Iterator<Item = Result<R, TaskError>> + 'a>
where
    A: serde::Serialize + serde::de::DeserializeOwned + 'static,
    R: serde::Serialize + serde::de::DeserializeOwned + 'static,
{
    let inputs = (0..).map(make).inspect(move |_| {
        taken.set(taken.get() + 1);
        assert!(taken.get() < ENDLESS, "inputs are taken without an end, {shape:?}");
    });
    macro_rules! with_settings {
        ($map:expr) => {{
            let mut map = $map;
            if let Some(window) = shape.window {
                map = map.window(window);
            }
            if let Some(chunk) = shape.chunk {
                map = map.chunk(chunk);
            }
            Box::new(map)
        }};
    }
    if shape.ordered {
        with_settings!(pool.map(function, inputs))
    } else {
        with_settings!(pool.map_unordered(function, inputs))
    }
}

/// A refusing pool takes one chunk to find out, and then one input for each error.
fn one_error_for_each_input(pool: &Pool, is_right: fn(&TaskErrorKind) -> bool) {
    for shape in shapes() {
        let taken = Cell::new(0);
        let mut results = results(pool, double, |number| number, &taken, shape);
        for yielded in 1..20 {
            let error = results.next().unwrap().unwrap_err();
            assert!(is_right(error.kind()), "{error}");
            let most = yielded.max(shape.chunk.unwrap_or(1));
            assert!(taken.get() <= most, "{} for {yielded}, {shape:?}", taken.get());
        }
    }
}

#[test]
fn a_map_of_a_closed_pool_takes_an_input_for_each_error() {
    let pool = pool(WORKERS);
    pool.shutdown().unwrap();
    one_error_for_each_input(&pool, |kind| *kind == TaskErrorKind::PoolClosed);
    assert_eq!(pool.map(double, 0..10).count(), 10, "every input has its item");
    assert_eq!(pool.map_unordered(double, 0..10).chunk(3).count(), 10);
}

#[test]
fn a_map_of_a_broken_pool_takes_an_input_for_each_error() {
    let command = Command::new(env!("CARGO_BIN_EXE_other_build"));
    let pool = builder(WORKERS).worker_command(&command).build().unwrap();
    pool.warm_up().unwrap_err();
    one_error_for_each_input(&pool, |kind| matches!(kind, TaskErrorKind::PoolBroken { .. }));
}

#[test]
fn a_map_stops_taking_inputs_when_its_pool_is_closed() {
    for shape in shapes() {
        let pool = pool(WORKERS);
        let taken = Cell::new(0);
        let mut results = results(&pool, double, |number| number, &taken, shape);
        for _ in 0..10 {
            results.next().unwrap().unwrap();
        }
        pool.shutdown_with(Shutdown::CancelPending, BOUND).unwrap();
        let before = taken.get();
        // Earlier inputs come first: values of those that had begun, and errors.
        let behind = results.by_ref().take(before).count();
        assert_eq!(behind, before);
        let more = taken.get() - before;
        let refused_chunk = shape.chunk.unwrap_or(4096);
        assert!(more <= behind + refused_chunk, "{more} more after {before}, {shape:?}");
        let before = taken.get();
        let errors: Vec<_> = results.take(20).map(Result::unwrap_err).collect();
        assert!(errors.iter().all(|error| matches!(
            error.kind(),
            TaskErrorKind::PoolClosed | TaskErrorKind::Cancelled
        )));
        assert!(taken.get() - before <= 20, "{} more, {shape:?}", taken.get() - before);
    }
}

#[test]
fn unencodable_inputs_are_taken_only_up_to_the_window() {
    let pool = pool(WORKERS);
    for shape in shapes() {
        let taken = Cell::new(0);
        let ahead = shape.window.unwrap_or(DEFAULT_WINDOW + 1);
        let mut results = results(&pool, |Unsendable(number)| number, Unsendable, &taken, shape);
        for yielded in 0..2 * DEFAULT_WINDOW {
            let error = results.next().unwrap().unwrap_err();
            assert!(matches!(error.kind(), TaskErrorKind::Codec { .. }), "{error}");
            assert!(taken.get() <= yielded + ahead, "{} at {yielded}, {shape:?}", taken.get());
        }
    }
}

#[test]
fn a_few_unencodable_inputs_delay_no_others() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Picky(#[serde(serialize_with = "not_sevens")] u64);
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn not_sevens<S: serde::Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        if number.is_multiple_of(7) {
            return Err(serde::ser::Error::custom("a multiple of seven"));
        }
        serializer.serialize_u64(*number)
    }
    let pool = pool(WORKERS);
    for shape in shapes() {
        let taken = Cell::new(0);
        let results = results(&pool, |Picky(number)| number, Picky, &taken, shape);
        for (number, result) in (0..2_000).zip(results) {
            match result {
                Ok(result) if shape.ordered => assert_eq!(result, number),
                Ok(result) => assert!(!result.is_multiple_of(7)),
                Err(error) => assert!(!shape.ordered || number % 7 == 0, "{number}: {error}"),
            }
        }
    }
}
