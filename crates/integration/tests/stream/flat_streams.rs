//! Flat streams: many items for one input, each handed over as it is produced.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brigade::stream::{Emit, EmitError, Item, Stream};
use brigade::{Pool, PoolError, SharedBuf, TaskErrorKind};
use brigade_integration::{attempt, pool, worker_died};
use brigade_testkit::{BOUND, Watchdog, outcome, pause, wait_until};
use futures::StreamExt;
use futures::executor::block_on;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

/// Emits the numbers below its argument.
fn count(to: u64, emit: &mut Emit<'_, u64>) {
    for number in 0..to {
        if emit.emit(number).is_err() {
            return;
        }
    }
}

fn received<A, R: DeserializeOwned + 'static>(stream: &Stream<A, R>) -> Item<R> {
    stream.recv_timeout(BOUND).unwrap()
}

/// Returns input, index and value of an item.
fn parts(item: Item<u64>) -> (u64, u64, u64) {
    (item.id, item.index, item.result.unwrap())
}

/// The notes of a test's tasks, one line each.
struct Notes {
    folder: TempDir,
}

/// The argument of a task that notes what it does.
type Input = (PathBuf, u64);

impl Notes {
    fn new() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("notes")
    }

    fn input(&self, number: u64) -> Input {
        (self.path(), number)
    }

    fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn wait_for(&self, lines: usize) {
        wait_until(&format!("{lines} notes"), BOUND, || self.lines().len() >= lines);
    }
}

fn note(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{line}").unwrap();
}

/// Emits numbers without an end, and notes each before it does, and the error that ends it.
fn endless((path, first): Input, emit: &mut Emit<'_, u64>) {
    for number in first.. {
        note(&path, "begins");
        if let Err(error) = emit.emit(number) {
            let end = match error {
                EmitError::Closed => "closed",
                EmitError::Expired => "expired",
                _ => "another error",
            };
            return note(&path, end);
        }
    }
}

#[test]
fn each_input_gets_its_items_in_the_order_of_their_emission() {
    let _watchdog = Watchdog::new("a flat stream", BOUND);
    let inputs = [0, 1, 5, 30, 0, 200, 2];
    let expected = |id: usize| (0..inputs[id]).map(move |n| (id as u64, n, n));
    for (workers, output) in [(1, 0), (1, 3), (3, 1), (3, 16)] {
        for ordered in [true, false] {
            let pool = pool(workers);
            let stream = pool.stream_flat(count).ordered(ordered).output(output).start().unwrap();
            let items: Vec<_> = std::thread::scope(|scope| {
                scope.spawn(|| {
                    for input in inputs {
                        stream.put(input).unwrap();
                    }
                    stream.finish();
                });
                stream.iter().map(parts).collect()
            });
            for id in 0..inputs.len() {
                let own = items.iter().copied().filter(|(input, ..)| *input == id as u64);
                assert!(own.eq(expected(id)), "input {id}");
            }
            assert!(!ordered || items.iter().copied().eq((0..inputs.len()).flat_map(expected)));
            let report = stream.report();
            assert_eq!((report.put, report.delivered, report.failed), (7, 7, 0));
        }
    }
}

#[test]
fn an_item_has_its_history() {
    let pool = pool(1);
    let stream = pool.stream_flat(count).start().unwrap();
    stream.put(2).unwrap();
    let item = received(&stream);
    let started = item.started.unwrap();
    assert!(item.queued <= started && started <= item.finished, "{item:?}");
    assert!(item.worker.is_some_and(|worker| worker.generation == 1));
    assert_eq!(item.attempt, 1);
}

#[test]
fn a_producer_waits_for_a_consumer_that_stands_still() {
    let _watchdog = Watchdog::new("a slow consumer", BOUND);
    let (pool, notes) = (pool(2), Notes::new());
    let stream = pool.stream_flat(endless).output(4).start().unwrap();
    stream.put(notes.input(0)).unwrap();
    notes.wait_for(5);
    for taken in 0..20 {
        pause(Duration::from_millis(5));
        assert_eq!(notes.lines().len(), taken + 5, "more was emitted than has room");
        assert_eq!(received(&stream).index, taken as u64);
        notes.wait_for(taken + 6);
    }
    assert_eq!(stream.pending(), 1);
}

#[test]
fn large_items_wait_in_the_worker() {
    let _watchdog = Watchdog::new("large items", BOUND);
    let pool = pool(1);
    let large = |count: u8, emit: &mut Emit<'_, Vec<u8>>| {
        for number in 0..count {
            emit.emit(vec![number; 300_000]).unwrap();
        }
    };
    let stream = pool.stream_flat(large).output(2).start().unwrap();
    stream.put(40).unwrap();
    stream.finish();
    for (item, number) in stream.iter().zip(0..) {
        assert_eq!(item.result.unwrap(), vec![number; 300_000]);
    }
    assert_eq!(stream.report().delivered, 1);
}

#[test]
fn what_was_emitted_before_a_death_or_a_panic_is_delivered() {
    let _watchdog = Watchdog::new("a death", BOUND);
    let pool = pool(2);
    let fails = |to: u64, emit: &mut Emit<'_, u64>| {
        count(3, emit);
        assert!(to != 0, "an input of zero");
        std::process::abort();
    };
    let stream = pool.stream_flat(fails).ordered(true).start().unwrap();
    stream.put(0).unwrap();
    stream.put(1).unwrap();
    stream.finish();
    for id in 0..2 {
        for index in 0..3 {
            assert_eq!(parts(received(&stream)), (id, index, index));
        }
        let item = received(&stream);
        assert_eq!((item.id, item.index), (id, 3));
        if id == 0 {
            assert!(item.result.unwrap_err().is_panic());
        } else {
            worker_died(item.result);
        }
    }
    assert!(stream.recv().is_none());
    let report = stream.report();
    assert_eq!((report.delivered, report.failed, report.lost), (2, 2, 1));
}

#[test]
fn a_retry_emits_only_what_is_missing() {
    let _watchdog = Watchdog::new("a retry", BOUND);
    let pool = pool(2);
    let dies_twice = |to: u64, emit: &mut Emit<'_, u64>| {
        for number in 0..to {
            emit.emit(number).unwrap();
            if number == 4 * u64::from(attempt()) {
                std::process::abort();
            }
        }
    };
    for output in [0, 2, 50] {
        let stream = pool.stream_flat(dies_twice).retries(2).output(output).start().unwrap();
        stream.put(12).unwrap();
        stream.finish();
        let items: Vec<_> = stream.iter().collect();
        assert_eq!(items.len(), 12, "{items:?}");
        for (item, index) in items.iter().zip(0..) {
            assert_eq!((item.index, item.result.as_ref().ok()), (index, Some(&index)));
            let attempt = if index <= 4 {
                1
            } else if index <= 8 {
                2
            } else {
                3
            };
            assert_eq!(item.attempt, attempt, "{item:?}");
        }
    }
}

#[test]
fn a_reset_releases_producers_and_delivers_nothing_stale() {
    let _watchdog = Watchdog::new("resets", BOUND);
    let (pool, notes) = (pool(1), Notes::new());
    let stream = pool.stream_flat(endless).output(2).start().unwrap();
    for round in 1..20_u64 {
        let before = notes.lines().len();
        stream.put(notes.input(round * 1000)).unwrap();
        if round % 3 > 0 {
            assert_eq!(received(&stream).result.unwrap(), round * 1000);
        }
        if round % 3 > 1 {
            notes.wait_for(before + 3);
        }
        assert_eq!(stream.reset(), 1);
        assert!(stream.try_recv().is_none());
        assert!(stream.is_idle());
    }
    drop(stream);
    let ended = || notes.lines().iter().filter(|line| *line == "closed").count();
    // An input that had not started is not run.
    wait_until("the producers' ends", BOUND, || ended() >= 12);
    assert_eq!(outcome(pool.submit(|()| 7, ()).unwrap()).unwrap(), 7);
}

/// Emits the same number again and again.
fn repeat(number: u64, emit: &mut Emit<'_, u64>) {
    while emit.emit(number).is_ok() {}
}

#[test]
fn no_item_is_stale_after_any_of_a_thousand_resets() {
    let _watchdog = Watchdog::new("many resets", BOUND);
    let pool = pool(3);
    for ordered in [true, false] {
        let stream = pool.stream_flat(repeat).ordered(ordered).output(4).start().unwrap();
        for round in 0..500 {
            stream.put(round).unwrap();
            stream.put(round).unwrap();
            for _ in 0..round % 7 {
                assert_eq!(received(&stream).result.unwrap(), round);
            }
            assert_eq!(stream.reset(), 2);
        }
        let report = stream.close(BOUND).unwrap();
        assert_eq!((report.put, report.delivered, report.dropped), (1000, 0, 1000));
    }
}

#[test]
fn a_stream_that_ends_releases_its_producers() {
    let _watchdog = Watchdog::new("the end of a stream", BOUND);
    let (pool, notes) = (pool(1), Notes::new());
    for round in 1..6 {
        let stream = pool.stream_flat(endless).output(2).start().unwrap();
        stream.put(notes.input(0)).unwrap();
        notes.wait_for(4 * (round - 1) + 3);
        if round % 2 == 0 {
            let report = stream.close(BOUND).unwrap();
            assert_eq!((report.put, report.dropped), (1, 1));
        } else {
            drop(stream);
        }
        assert_eq!(outcome(pool.submit(|()| 7, ()).unwrap()).unwrap(), 7);
        assert_eq!(notes.lines().len(), 4 * round, "{:?}", notes.lines());
    }
}

#[test]
fn a_blocked_flat_stream_leaves_a_worker_to_others() {
    let _watchdog = Watchdog::new("another stream", BOUND);
    let (pool, notes) = (pool(2), Notes::new());
    let blocked = pool.stream_flat(endless).output(1).start().unwrap();
    while blocked.try_put(notes.input(0)).is_ok() {}
    notes.wait_for(2);
    let other = pool.stream(|number: u64| number + 1).ordered(true).start().unwrap();
    for number in 0..100 {
        other.put(number).unwrap();
        assert_eq!(received(&other).result.unwrap(), number + 1);
    }
    let flat = pool.stream_flat(count).start().unwrap();
    flat.put(50).unwrap();
    flat.finish();
    assert_eq!(flat.iter().count(), 50);
    assert_eq!(notes.lines().len(), 2, "one producer, which waits");
}

#[test]
fn a_chain_of_flat_streams_does_not_deadlock() {
    let _watchdog = Watchdog::new("a chain", BOUND);
    let pool = pool(3);
    let first = pool.stream_flat(count).output(1).start().unwrap();
    let second = pool.stream_flat(count).output(1).start().unwrap();
    let total: u64 = std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..10 {
                first.put(20).unwrap();
            }
            first.finish();
        });
        scope.spawn(|| {
            for item in &first {
                second.put(item.result.unwrap()).unwrap();
            }
            second.finish();
        });
        second.iter().map(|item| item.result.unwrap()).sum()
    });
    assert_eq!(total, 10 * (0..20).flat_map(|n| 0..n).sum::<u64>());
}

#[test]
fn the_soft_deadline_ends_the_wait_and_the_input() {
    let _watchdog = Watchdog::new("a soft deadline", BOUND);
    let (pool, notes) = (pool(1), Notes::new());
    let limit = Duration::from_secs(1);
    let stream = pool.stream_flat(endless).output(2).soft_deadline(limit).start().unwrap();
    stream.put(notes.input(0)).unwrap();
    stream.finish();
    notes.wait_for(4);
    assert_eq!(notes.lines().last().map(String::as_str), Some("expired"));
    let items: Vec<_> = stream.iter().collect();
    assert_eq!(items.len(), 3);
    let error = items[2].result.as_ref().unwrap_err();
    assert!(
        matches!(error.kind(), TaskErrorKind::DeadlineExceeded { limit: it, .. } if *it == limit)
    );
    assert_eq!(items[2].index, 2);
}

#[test]
fn a_shutdown_releases_producers_and_delivers_their_items() {
    let _watchdog = Watchdog::new("a shutdown", BOUND);
    let (pool, notes) = (pool(2), Notes::new());
    let stream = pool.stream_flat(endless).output(3).start().unwrap();
    stream.put(notes.input(0)).unwrap();
    stream.put(notes.input(0)).unwrap();
    stream.finish();
    notes.wait_for(4);
    pool.shutdown().unwrap();
    let items: Vec<_> = stream.iter().collect();
    assert_eq!(items.len(), 5, "{items:?}");
    for (index, item) in items.iter().take(3).enumerate() {
        assert_eq!((item.id, item.index), (0, index as u64));
        assert!(item.result.is_ok());
    }
    for (id, item) in items[3..].iter().enumerate() {
        assert_eq!(item.id, id as u64);
        let error = item.result.as_ref().unwrap_err();
        assert!(matches!(error.kind(), TaskErrorKind::PoolClosed), "{error}");
    }
}

/// Emits slices of a buffer, with their positions.
fn slices(buffer: SharedBuf, emit: &mut Emit<'_, (usize, SharedBuf)>) {
    for start in (0..buffer.len()).step_by(10_000) {
        let end = buffer.len().min(start + 10_000);
        emit.emit((start, buffer.slice(start..end))).unwrap();
    }
}

#[test]
fn items_may_have_shared_buffers() {
    let _watchdog = Watchdog::new("buffers", BOUND);
    let pool = pool(2);
    let bytes: Vec<u8> = (0..=250).cycle().take(95_000).collect();
    let stream = pool.stream_flat(slices).start().unwrap();
    stream.put(bytes.clone().into()).unwrap();
    stream.finish();
    let mut whole = Vec::new();
    for item in &stream {
        let (start, buffer) = item.result.unwrap();
        assert_eq!(start, whole.len());
        whole.extend_from_slice(&buffer);
    }
    assert!(whole == bytes);
}

#[test]
fn an_item_that_cannot_be_encoded_is_the_functions_to_handle() {
    let pool = Pool::builder().workers(1).message_limit(1000).build().unwrap();
    let stream = pool.stream_flat(|(): (), emit: &mut Emit<'_, Vec<u8>>| {
        let error = emit.emit(vec![1; 2000]).expect_err("too large");
        assert!(matches!(error, EmitError::Codec { .. }), "{error}");
        emit.emit(vec![2]).unwrap();
    });
    let stream = stream.start().unwrap();
    stream.put(()).unwrap();
    stream.finish();
    let items: Vec<_> = stream.iter().map(|item| item.result.unwrap()).collect();
    assert_eq!(items, [[2]]);
}

#[test]
fn items_wake_futures_and_seeds_are_set() {
    let _watchdog = Watchdog::new("futures", BOUND);
    let pool = pool(2);
    let seeds = |to: u64, emit: &mut Emit<'_, Option<u64>>| {
        for _ in 0..to {
            emit.emit(brigade::worker::seed()).unwrap();
        }
    };
    let stream = pool.stream_flat(seeds).seed(7).output(1).start().unwrap();
    stream.put(20).unwrap();
    stream.finish();
    let items: Vec<_> = block_on((&stream).map(|item| item.result.unwrap()).collect());
    assert!(items.len() == 20 && items[0].is_some(), "{items:?}");
    assert!(items.iter().all(|seed| *seed == items[0]));
}

#[test]
fn a_flat_stream_needs_a_worker() {
    let pool = pool(1);
    let error = pool.stream_flat(count).workers(0).start().unwrap_err();
    assert!(matches!(error, PoolError::Configuration { field: "workers", .. }), "{error}");
}
