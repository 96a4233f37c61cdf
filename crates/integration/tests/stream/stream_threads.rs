//! Streams under many threads, in chains and as futures; resets and deaths at random moments.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use brigade::stream::{PutErrorKind, Stream};
use brigade_integration::{Log, builder, pool};
use brigade_testkit::faults::spins;
use brigade_testkit::processes::{Signal, hit_child};
use brigade_testkit::{BOUND, Gate, PATIENCE, Random, Watchdog, pass, pause, repetitions};
use futures::executor::block_on;
use futures::future::{Either, select};
use futures::stream::StreamExt;

const LONG: Duration = Duration::from_secs(50 * PATIENCE);

fn square(number: u64) -> u64 {
    number * number
}

fn echo(number: u64) -> u64 {
    number
}

/// Puts every input.
fn put_all(stream: &Stream<u64, u64>, inputs: impl IntoIterator<Item = u64>) {
    for input in inputs {
        stream.put(input).unwrap();
    }
}

#[test]
fn producers_and_consumers_in_several_threads() {
    let _watchdog = Watchdog::new("four producers and three consumers", BOUND);
    for ordered in [false, true] {
        let pool = pool(2);
        let stream = pool.stream(echo).ordered(ordered).start().unwrap();
        let (producers, seen) = (AtomicU64::new(4), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for number in 0..4_u64 {
                let (stream, producers) = (&stream, &producers);
                scope.spawn(move || {
                    for input in 0..500 {
                        stream.put(number * 1_000 + input).unwrap();
                    }
                    if producers.fetch_sub(1, Ordering::Relaxed) == 1 {
                        stream.finish();
                    }
                });
            }
            for _ in 0..3 {
                scope.spawn(|| {
                    for item in &stream {
                        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                        seen.push((item.id, item.result.unwrap()));
                    }
                });
            }
        });
        let seen = seen.into_inner().unwrap();
        let ids: BTreeSet<u64> = seen.iter().map(|(id, _)| *id).collect();
        let values: BTreeSet<u64> = seen.iter().map(|(_, value)| *value).collect();
        assert_eq!((seen.len(), ids.len(), values.len()), (2_000, 2_000, 2_000));
        assert!(ids.into_iter().eq(0..2_000));
    }
}

#[test]
fn chained_streams_reach_the_end() {
    let _watchdog = Watchdog::new("three streams in a chain", BOUND);
    let pool = pool(1);
    let stream = || pool.stream(|number: u64| number + 1).per_worker(0).output(0).start().unwrap();
    let streams = [stream(), stream(), stream()];
    thread::scope(|scope| {
        scope.spawn(|| {
            put_all(&streams[0], 0..300);
            streams[0].finish();
        });
        for pair in streams.windows(2) {
            scope.spawn(|| {
                for item in &pair[0] {
                    pair[1].put(item.result.unwrap()).unwrap();
                }
                pair[1].finish();
            });
        }
        let sum: u64 = streams[2].iter().map(|item| item.result.unwrap()).sum();
        assert_eq!(sum, (3..303).sum::<u64>());
    });
}

#[test]
fn one_thread_can_run_a_chain() {
    let _watchdog = Watchdog::new("a chain in one thread", BOUND);
    let pool = pool(1);
    let [first, second] = [(); 2].map(|()| pool.stream(square).output(0).start().unwrap());
    let (mut next, mut between, mut sum) = (0, None, 0);
    while second.report().delivered < 100 {
        while next < 100 && first.try_put(next).is_ok() {
            next += 1;
        }
        if between.is_none() {
            between = first.try_recv().map(|item| item.result.unwrap());
        }
        if let Some(value) = between.take() {
            between = second.try_put(value).err().map(brigade::stream::Full::into_inner);
        }
        let waits = between.is_some() || first.is_idle();
        let timeout = if waits { BOUND } else { Duration::ZERO };
        if !second.is_idle() {
            sum += second.recv_timeout(timeout).map_or(0, |item| item.result.unwrap());
        }
    }
    assert_eq!(sum, (0..100_u64).map(|number| number.pow(4)).sum::<u64>());
}

#[test]
fn a_fast_producer_and_a_fast_consumer_wait_for_each_other() {
    let _watchdog = Watchdog::new("unequal ends", BOUND);
    let pool = pool(2);
    for (produce, consume) in [(0, 1), (1, 0)] {
        let stream = pool.stream(echo).start().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..200 {
                    pause(Duration::from_millis(produce));
                    stream.put(number).unwrap();
                }
                stream.finish();
            });
            for item in &stream {
                pause(Duration::from_millis(consume));
                item.result.unwrap();
            }
        });
        let report = stream.report();
        assert_eq!(report.delivered, 200);
        assert!(report.most_pending <= 2 + 3 + 4 && report.most_finished <= 5, "{report}");
    }
}

#[test]
fn items_are_awaited() {
    let _watchdog = Watchdog::new("a stream as a future", BOUND);
    let pool = pool(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for ordered in [false, true] {
        let stream = pool.stream(square).ordered(ordered).start().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                put_all(&stream, 0..1_000);
                stream.finish();
            });
            let consume = || async {
                (&stream)
                    .map(|item| item.result.unwrap())
                    .fold(0, |sum, it| async move { sum + it })
                    .await
            };
            let (first, second) = block_on(futures::future::join(consume(), consume()));
            let expected: u64 = (0..1_000).map(square).sum();
            assert_eq!(first + second, expected);
        });
    }
    let mut owned = pool.stream(square).start().unwrap();
    owned.put(4).unwrap();
    owned.finish();
    runtime.block_on(async move {
        assert_eq!(owned.next().await.unwrap().result.unwrap(), 16);
        assert!(owned.next().await.is_none());
    });
}

#[test]
fn a_future_that_is_dropped_loses_no_item() {
    let _watchdog = Watchdog::new("dropped futures", BOUND);
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).start().unwrap();
    stream.put(gate.pass(0)).unwrap();
    for _ in 0..200 {
        let mut items = &stream;
        let ready = futures::future::ready(());
        let Either::Right(_) = block_on(select(items.next(), ready)) else {
            panic!("there is no item yet")
        };
    }
    gate.open();
    assert_eq!(block_on((&stream).next()).unwrap().result.unwrap(), 0);
    let waits = thread::scope(|scope| {
        let waits = scope.spawn(|| block_on((&stream).next()).is_none());
        pause(Duration::from_millis(20));
        stream.finish();
        waits.join().unwrap()
    });
    assert!(waits, "the end wakes a future");
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker's own fault");
    }
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    let _watchdog = Watchdog::new("a waker that panics", BOUND);
    let log = Log::get();
    let pool = pool(1);
    let stream = pool.stream(square).start().unwrap();
    for number in 0..100 {
        let waker = Waker::from(Arc::new(Panics));
        assert!(stream.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        let mut items = &stream;
        let waits = items.next();
        stream.put(number).unwrap();
        assert_eq!(block_on(waits).unwrap().id, number);
    }
    let waker = Waker::from(Arc::new(Panics));
    assert!(stream.poll_recv(&mut Context::from_waker(&waker)).is_pending());
    stream.finish();
    assert!(stream.recv().is_none());
    log.wait_for_line(&["ERROR", "waker panicked", "a waker's own fault"]);
}

#[test]
fn no_item_is_stale_after_any_of_ten_thousand_resets() {
    let _watchdog = Watchdog::new("ten thousand resets", LONG);
    let seed = Random::seed_from("BRIGADE_STREAM_SEED");
    let pool = pool(2);
    for ordered in [false, true] {
        let mut random = Random::new(seed);
        let stream = pool.stream(spins).ordered(ordered).start().unwrap();
        // Ids below the floor were put before a reset that has returned.
        let (put, floor) = (AtomicU64::new(0), AtomicU64::new(0));
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let mut times = Random::new(random.number());
            scope.spawn({
                let (stream, put) = (&stream, &put);
                move || loop {
                    match stream.put(times.within(0..30)) {
                        Ok(id) => put.store(id + 1, Ordering::SeqCst),
                        Err(refused) => break assert_eq!(refused.kind(), PutErrorKind::Finished),
                    }
                }
            });
            let receive = || {
                let mut last = None;
                loop {
                    let floor = floor.load(Ordering::SeqCst);
                    let Some(item) = stream.recv_timeout(Duration::from_millis(5)) else {
                        if ended.load(Ordering::SeqCst) {
                            break;
                        }
                        continue;
                    };
                    assert!(item.id >= floor, "{} is stale, seed {seed}", item.id);
                    assert!(!ordered || last < Some(item.id), "the order of ids, seed {seed}");
                    last = Some(item.id);
                    item.result.unwrap();
                }
            };
            scope.spawn(receive);
            for _ in 0..5_000 {
                if random.chance(50) {
                    pause(random.below(Duration::from_micros(200)));
                }
                let before = put.load(Ordering::SeqCst);
                stream.reset();
                floor.store(before, Ordering::SeqCst);
            }
            ended.store(true, Ordering::SeqCst);
            let report = stream.close(BOUND).unwrap();
            assert_eq!(report.put, report.delivered + report.dropped, "{report}, seed {seed}");
            assert_eq!((report.pending, report.failed), (0, 0), "{report}, seed {seed}");
        });
    }
}

#[test]
fn every_id_is_accounted_for_while_workers_are_killed() {
    let _watchdog = Watchdog::new("a stream whose workers die", LONG);
    let seed = Random::seed_from("BRIGADE_STREAM_SEED");
    let mut random = Random::new(seed);
    let second = Duration::from_secs(1);
    let pool = builder(2).restart_budget(1_000_000, second).build().unwrap();
    let items = repetitions(1_200);
    for (ordered, retries) in [(false, 0), (true, 0), (false, 1_000)] {
        let stream = pool.stream(spins).ordered(ordered).retries(retries).start().unwrap();
        let ended = AtomicBool::new(false);
        let mut ids = BTreeSet::new();
        let (mut lost, mut kills) = (0, 0);
        thread::scope(|scope| {
            scope.spawn(|| {
                put_all(&stream, (0..items).map(|_| 200));
                stream.finish();
            });
            let killer = scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    pause(random.below(Duration::from_millis(8)));
                    let pids = pool.worker_pids();
                    if !pids.is_empty() {
                        kills += u32::from(hit_child(*random.choose(&pids), Signal::KILL));
                    }
                }
                kills
            });
            for item in &stream {
                assert!(ids.insert(item.id), "{} came twice, seed {seed}", item.id);
                match item.result {
                    Ok(value) => assert_eq!(value, 200),
                    Err(error) if error.is_worker_death() => lost += 1,
                    Err(error) if error.is_quarantined() => lost += 1,
                    Err(error) => panic!("{error}, seed {seed}"),
                }
            }
            ended.store(true, Ordering::Relaxed);
            let kills = killer.join().unwrap();
            assert!(kills > 0 && lost <= u64::from(kills), "{kills} kills, {lost} lost");
        });
        assert!(ids.into_iter().eq(0..items), "an id is missing, seed {seed}");
        assert_eq!(stream.report().lost, lost);
        assert!(retries == 0 || lost == 0, "{lost} lost, seed {seed}");
    }
}

#[test]
fn streams_that_are_dropped_leave_nothing_behind() {
    let _watchdog = Watchdog::new("streams that are dropped", BOUND);
    let pool = pool(2);
    let mut random = Random::new(7);
    for _ in 0..300 {
        let stream: Stream<u64, u64> = pool.stream(spins).start().unwrap();
        for _ in 0..random.within(0..12) {
            let _ = stream.try_put(random.within(0..100));
        }
        for _ in 0..random.within(0..4) {
            drop(stream.try_recv());
        }
    }
    assert_eq!(pool.submit(square, 2).unwrap().wait().unwrap(), 4);
}
