//! Items of maps and streams that run again after a pause, a panic and an `Err`.

use std::time::{Duration, Instant};

use brigade::stream::Emit;
use brigade::{Pool, Retry, TaskError};
use brigade_integration::{attempt, pool};
use brigade_testkit::{BOUND, Watchdog, outcome};

const PAUSE: Duration = Duration::from_millis(30);

/// The ways in which every fifth item fails before its third attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
enum Way {
    Dies,
    IsLate,
    Panics,
    Errs,
    ErrsAtLength,
}

const WAYS: [Way; 5] = [Way::Dies, Way::IsLate, Way::Panics, Way::Errs, Way::ErrsAtLength];

/// Fails, or returns the number and the attempt.
fn fails_at_times((way, number): (Way, u32)) -> Result<(u32, u32), Vec<u8>> {
    if !number.is_multiple_of(5) || attempt() == 3 {
        return Ok((number, attempt()));
    }
    match way {
        Way::Dies => std::process::abort(),
        Way::IsLate => brigade_testkit::faults::hangs(()),
        Way::Panics => panic!("attempt {}", attempt()),
        Way::Errs => return Err(vec![7]),
        Way::ErrsAtLength => return Err(vec![7; 100 << 10]),
    }
    Ok((number, attempt()))
}

fn retry() -> Retry {
    Retry::new().attempts(3).delay(PAUSE).factor(1.5).jitter(0.5)
}

/// Returns what becomes of each item.
fn expected(inputs: u32) -> Vec<(u32, u32)> {
    (0..inputs).map(|number| (number, if number.is_multiple_of(5) { 3 } else { 1 })).collect()
}

fn inputs(way: Way, count: u32) -> impl Iterator<Item = (Way, u32)> {
    (0..count).map(move |number| (way, number))
}

type Failable = Result<(u32, u32), Vec<u8>>;

fn values(results: impl Iterator<Item = Result<Failable, TaskError>>) -> Vec<(u32, u32)> {
    results.map(|result| result.unwrap().unwrap()).collect()
}

#[test]
fn items_of_a_map_run_again_after_every_kind_of_failure() {
    let _watchdog = Watchdog::new("maps with retries", 4 * BOUND);
    let pool = pool(2);
    for way in WAYS {
        for chunk in [Some(1), Some(12), None] {
            let map = pool.map(fails_at_times, inputs(way, 12)).retry(retry());
            let map = map.retry_panics().retry_errors();
            let map = if way == Way::IsLate { map.deadline(4 * PAUSE) } else { map };
            // Items of a fixed chunk share their deadline.
            let map = match chunk.filter(|chunk| way != Way::IsLate || *chunk == 1) {
                Some(chunk) => map.chunk(chunk),
                None => map,
            };
            assert_eq!(values(map), expected(12), "{way:?} in chunks of {chunk:?}");
        }
    }
}

#[test]
fn the_last_failure_of_an_item_is_its_result() {
    let pool = pool(1);
    for (way, retries) in [(Way::Panics, 1), (Way::Errs, 1), (Way::Errs, 0)] {
        let map = pool.map(fails_at_times, inputs(way, 7)).retries(retries).chunk(7);
        let results: Vec<_> = map.retry_panics().retry_errors().collect();
        for (number, result) in (0..).zip(results) {
            match result {
                Ok(Ok(value)) => assert_eq!((value, number % 5 == 0), ((number, 1), false)),
                Ok(Err(error)) => assert_eq!((error, number % 5, way), (vec![7], 0, Way::Errs)),
                Err(error) => {
                    assert!(error.is_panic() && error.attempt() == retries + 1, "{error}");
                    assert_eq!((number % 5, error.index()), (0, Some(number as usize)));
                }
            }
        }
    }
}

#[test]
fn failures_of_items_are_retried_only_if_that_was_asked_for() {
    let pool = pool(1);
    let map = pool.map(fails_at_times, inputs(Way::Panics, 3)).retry(retry()).retry_errors();
    let first = map.chunk(3).next().unwrap().unwrap_err();
    assert!(first.is_panic() && first.attempt() == 1, "{first}");
    let map = pool.map(fails_at_times, inputs(Way::Errs, 3)).retry(retry()).retry_panics();
    assert_eq!(map.chunk(3).next().unwrap().unwrap(), Err(vec![7]));
}

/// An hour, which no test waits for.
fn hour() -> Retry {
    Retry::new().attempts(3).delay(Duration::from_secs(3600))
}

#[test]
fn other_items_go_on_while_many_are_in_a_pause() {
    let _watchdog = Watchdog::new("items in a long pause", BOUND);
    let pool = pool(2);
    for chunk in [Some(1), None] {
        let map = pool.map_unordered(fails_at_times, inputs(Way::Errs, 500)).retry(hour());
        let map = map.retry_errors();
        let map = match chunk {
            Some(chunk) => map.chunk(chunk),
            None => map,
        };
        // Every fifth one is in its pause.
        let mut numbers: Vec<_> = values(map.take(400)).into_iter().map(|it| it.0).collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq((0..500).filter(|it| it % 5 != 0)));
    }
    // The items that are dropped are not in the queue any more.
    assert_eq!(outcome(pool.submit(brigade_integration::square, 7).unwrap()).unwrap(), 49);
    pool.shutdown().unwrap();
}

#[test]
fn items_in_a_pause_count_in_the_window() {
    let _watchdog = Watchdog::new("a window of items in a pause", BOUND);
    let pool = pool(2);
    // A busy machine needs a longer one until nothing but items in their pause is left.
    for timeout in (1..).map(|turn| 10 * turn * PAUSE) {
        let taken = std::cell::Cell::new(0);
        let inputs = inputs(Way::Errs, 100).inspect(|_| taken.set(taken.get() + 1));
        let map = pool.map_unordered(fails_at_times, inputs).retry(hour()).retry_errors();
        let map = map.chunk(1).window(8).timeout(timeout);
        let results = map.take_while(Result::is_ok).count();
        // Eight items are in their pause at the end.
        assert!(taken.get() <= 36 && results <= 28, "{} taken, {results} results", taken.get());
        if (taken.get(), results) == (36, 28) {
            break;
        }
    }
}

#[test]
fn an_item_in_its_pause_ends_with_its_map_and_with_the_pool() {
    let _watchdog = Watchdog::new("items in a long pause", BOUND);
    let pool = pool(1);
    let map = |pool: &Pool| -> Vec<_> {
        let map = pool.map(fails_at_times, inputs(Way::Errs, 6)).retry(hour()).retry_errors();
        map.chunk(1).timeout(3 * PAUSE).collect()
    };
    let results = map(&pool);
    let error = results.into_iter().next_back().unwrap().unwrap_err();
    assert_eq!((error.pending, error.total), (6, 6));
    let begin = Instant::now();
    pool.shutdown().unwrap();
    assert!(begin.elapsed() < BOUND, "the map was dropped, and its items with it");
}

#[test]
fn inputs_of_streams_run_again_after_every_kind_of_failure() {
    let _watchdog = Watchdog::new("streams with retries", 2 * BOUND);
    let pool = pool(2);
    for way in WAYS {
        let stream = pool.stream(fails_at_times).ordered(true).deadline(4 * PAUSE).retry(retry());
        let stream = stream.retry_panics().retry_errors().start().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for input in inputs(way, 12) {
                    stream.put(input).unwrap();
                }
                stream.finish();
            });
            let items: Vec<_> = stream.iter().collect();
            assert!(items.iter().all(|item| item.attempt == if item.id % 5 == 0 { 3 } else { 1 }));
            assert_eq!(values(items.into_iter().map(|item| item.result)), expected(12), "{way:?}");
        });
    }
}

#[test]
fn a_flat_stream_runs_again_after_a_panic_and_not_after_an_err() {
    fn emits(number: u32, emit: &mut Emit<'_, Result<u32, String>>) {
        for index in 0..4 {
            assert!(index < 2 || attempt() == 2, "too early");
            let sent = if index == 1 { Err(format!("{number}")) } else { Ok(index) };
            if emit.emit(sent).is_err() {
                return;
            }
        }
    }
    let pool = pool(2);
    let stream = pool.stream_flat(emits).retry(retry()).retry_panics().retry_errors();
    let stream = stream.start().unwrap();
    stream.put(7).unwrap();
    stream.finish();
    let items: Vec<_> = stream.iter().map(|item| (item.index, item.result.unwrap())).collect();
    assert_eq!(items, [(0, Ok(0)), (1, Err("7".to_owned())), (2, Ok(2)), (3, Ok(3))]);
}
