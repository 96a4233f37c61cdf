//! Streams: what the model of section 5 of `docs/semantics.md` promises, row by row.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use brigade::stream::{Item, PutErrorKind, Stream, StreamBuilder};
use brigade::{Pool, SharedBuf, TaskErrorKind};
use brigade_integration::{JOIN, Log, attempt, builder, picky, pool, square, worker_died};
use brigade_testkit::faults::{
    How, SpoilsEncoding, aborts, hangs, sleeps, spins, takes_what_spoils_encoding,
};
use brigade_testkit::{BOUND, Gate, Pass, Watchdog, outcome, pass, wait_until};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Puts every input.
fn put_all(stream: &Stream<u64, u64>, inputs: impl IntoIterator<Item = u64>) {
    for input in inputs {
        stream.put(input).unwrap();
    }
}

fn received<A, R: DeserializeOwned + 'static>(stream: &Stream<A, R>) -> Item<R> {
    stream.recv_timeout(BOUND).unwrap()
}

/// Fills a stream until it is full, and returns the number of inputs.
fn fill<R>(stream: &Stream<Pass, R>, gate: &Gate) -> u64
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let mut next = 0;
    while stream.try_put(gate.pass(next)).is_ok() {
        next += 1;
    }
    next
}

#[test]
fn each_input_gets_an_item_with_its_history() {
    let _watchdog = Watchdog::new("a stream", BOUND);
    for ordered in [false, true] {
        let pool = pool(2);
        let stream = pool.stream(square).ordered(ordered).start().unwrap();
        let begin = Instant::now();
        let mut ids = Vec::new();
        for number in 0..100 {
            if stream.is_full() {
                ids.push(check(&received(&stream), begin));
            }
            assert_eq!(stream.put(number).unwrap(), number);
        }
        stream.finish();
        ids.extend(stream.iter().map(|item| check(&item, begin)));
        assert!(stream.recv().is_none(), "the end stays the end");
        if !ordered {
            ids.sort_unstable();
        }
        assert!(ids.into_iter().eq(0..100));
        let report = stream.report();
        assert_eq!((report.put, report.delivered, report.pending, report.failed), (100, 100, 0, 0));
    }
}

fn check(item: &Item<u64>, begin: Instant) -> u64 {
    assert_eq!(*item.result.as_ref().unwrap(), item.id * item.id);
    let started = item.started.unwrap();
    assert!(begin <= item.queued && item.queued <= started, "{item:?}");
    assert!(started <= item.finished && item.finished <= Instant::now(), "{item:?}");
    assert_eq!(item.attempt, 1);
    assert!(item.worker.is_some_and(|worker| worker.slot < 2 && worker.generation == 1));
    item.id
}

#[test]
fn streams_deliver_in_the_order_of_ids_or_of_ends() {
    let _watchdog = Watchdog::new("ordered streams", BOUND);
    let pool = pool(2);
    for ordered in [true, false] {
        let gate = Gate::new();
        let stream = pool.stream(late).ordered(ordered).start().unwrap();
        stream.put(Some(gate.pass(0))).unwrap();
        gate.wait_for_arrivals(1);
        stream.put(None).unwrap();
        if ordered {
            assert!(stream.recv_timeout(Duration::from_millis(50)).is_none());
        } else {
            assert_eq!(received(&stream).id, 1);
        }
        gate.open();
        let ids: Vec<u64> = (0..stream.pending()).map(|_| received(&stream).id).collect();
        assert_eq!(ids, if ordered { vec![0, 1] } else { vec![0] });
    }
}

/// Waits at a gate, if it gets a pass.
fn late(at: Option<Pass>) {
    at.map(pass);
}

#[test]
fn a_stream_is_full_only_when_every_place_is_taken() {
    let pool = pool(2);
    for (per_worker, output) in [(2, 3), (0, 0), (1, 0), (0, 4)] {
        let gate = Gate::new();
        let stream = pool.stream(pass).per_worker(per_worker).output(output).start().unwrap();
        let places = (2 + output + 2 * per_worker) as u64;
        assert!(!stream.is_full());
        assert_eq!(fill(&stream, &gate), places);
        assert!(stream.is_full());
        let full = stream.try_put(gate.pass(places)).unwrap_err();
        assert_eq!((full.kind(), full.is_full()), (PutErrorKind::Full, true));
        assert_eq!(format!("{full:?}"), full.to_string());
        assert!(full.to_string().contains("is full"), "{full}");
        let timeout = Duration::from_millis(20);
        let (input, begin) = (full.into_inner(), Instant::now());
        let late = stream.put_timeout(input, timeout).unwrap_err();
        assert!(late.kind() == PutErrorKind::TimedOut && begin.elapsed() >= timeout);
        gate.open();
        received(&stream);
        assert!(!stream.is_full(), "one place is free");
        assert_eq!(stream.put_timeout(late.into_inner(), BOUND).unwrap(), places);
        assert!(stream.is_full());
        assert_eq!(stream.report().most_pending as u64, places);
    }
}

#[test]
fn put_waits_for_room_and_hears_of_the_end() {
    let _watchdog = Watchdog::new("producers that wait", BOUND);
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).start().unwrap();
    let places = fill(&stream, &gate);
    thread::scope(|scope| {
        let (stream, gate) = (&stream, &gate);
        let mut waiting: Vec<_> =
            (0..3).map(|n| scope.spawn(move || stream.put(gate.pass(places + n)))).collect();
        gate.open();
        received(stream);
        wait_until("one of them", BOUND, || waiting.iter().any(ScopedJoinHandle::is_finished));
        let first = waiting.remove(waiting.iter().position(ScopedJoinHandle::is_finished).unwrap());
        assert_eq!(first.join().unwrap().unwrap(), places);
        stream.finish();
        for other in waiting {
            let refused = other.join().unwrap().unwrap_err();
            assert_eq!((refused.kind(), refused.is_full()), (PutErrorKind::Finished, false));
        }
    });
    assert_eq!(stream.iter().count() as u64, places);
}

#[test]
fn failures_are_items() {
    let _watchdog = Watchdog::new("items with errors", BOUND);
    let pool = pool(2);
    let stream = pool.stream(picky).label("picky").start().unwrap();
    let mut items = Vec::new();
    for number in 0..100 {
        if stream.is_full() {
            items.push(received(&stream));
        }
        stream.put(number).unwrap();
    }
    stream.finish();
    items.extend(&stream);
    assert_eq!(items.iter().map(|item| item.id).collect::<BTreeSet<_>>().len(), 100);
    for item in items {
        match (item.id, item.result) {
            (50, Err(error)) => {
                assert!(item.worker.is_some(), "the worker that was lost");
                assert_eq!(error.label(), Some("picky"));
                assert_eq!(worker_died::<u64>(Err(error)).1, brigade::Exit::Signal(6));
            }
            (id, Err(error)) => assert!(id.is_multiple_of(7) && error.is_panic(), "{error}"),
            (id, Ok(value)) => assert!(id == value && !id.is_multiple_of(7)),
        }
    }
    let report = stream.report();
    assert_eq!((report.failed, report.lost), (16, 1));
    assert!(report.to_string().contains("16 failed, 1 of them lost"), "{report}");
}

#[test]
fn an_input_that_cannot_be_encoded_is_an_item_too() {
    let _watchdog = Watchdog::new("inputs that fail", BOUND);
    let pool = pool(1);
    for seed in [None, Some(1)] {
        let mut builder = pool.stream(takes_what_spoils_encoding);
        if let Some(seed) = seed {
            builder = builder.seed(seed);
        }
        let stream = builder.ordered(true).start().unwrap();
        for how in [How::NotAtAll, How::Fails, How::NotAtAll] {
            stream.put(SpoilsEncoding(how)).unwrap();
        }
        stream.finish();
        let results: Vec<_> = stream.iter().map(|item| item.result).collect();
        let kind = results[1].as_ref().unwrap_err().kind();
        assert!(matches!(kind, TaskErrorKind::Codec { message } if message.contains("Spoils")));
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    }
}

#[test]
fn deadlines_and_retries_are_those_of_a_task() {
    let _watchdog = Watchdog::new("deadlines", BOUND);
    let pool = pool(1);
    let stream = pool.stream(hangs).deadline(Duration::from_millis(50)).start().unwrap();
    stream.put(()).unwrap();
    let item = received(&stream);
    assert!(item.result.unwrap_err().is_deadline() && item.worker.is_some());
    assert!(item.finished - item.started.unwrap() >= Duration::from_millis(50));
    let retried = pool.stream(aborts).retries(2).priority(1).start().unwrap();
    retried.put(()).unwrap();
    let item = received(&retried);
    assert_eq!((item.attempt, item.result.unwrap_err().attempt()), (3, 3));
    assert_eq!(retried.report().lost, 1);
    let late = pool.stream(sleeps).queue_deadline(Duration::from_millis(20)).start().unwrap();
    let busy = pool.submit(sleeps, 200).unwrap();
    late.put(0).unwrap();
    let item = received(&late);
    assert!(item.result.unwrap_err().is_queue_deadline());
    assert!(item.started.is_none() && item.worker.is_none());
    busy.wait().unwrap();
}

#[test]
fn a_reset_drops_everything_and_the_stream_goes_on() {
    let _watchdog = Watchdog::new("a reset", BOUND);
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).ordered(true).start().unwrap();
    let places = fill(&stream, &gate);
    gate.wait_for_arrivals(1);
    assert_eq!(stream.reset(), places);
    assert!(stream.is_idle() && !stream.is_full() && stream.try_recv().is_none());
    assert_eq!(stream.put(gate.pass(100)).unwrap(), places, "ids are not used again");
    gate.open();
    let item = received(&stream);
    assert_eq!((item.id, item.result.unwrap()), (places, 100));
    assert_eq!(gate.arrivals(), 2, "what had not started never ran");
    let report = stream.report();
    assert_eq!((report.dropped, report.delivered, report.pending), (places, 1, 0));
    assert_eq!(stream.reset(), 0);
}

#[test]
fn a_chain_that_is_given_up_is_used_again() {
    let _watchdog = Watchdog::new("a chain", BOUND);
    let pool = pool(2);
    let [first, second] = [(); 2].map(|()| pool.stream(square).start().unwrap());
    for round in 0..20 {
        put_all(&first, 1..6);
        put_all(&second, (0..3).map(|_| received(&first).result.unwrap()));
        received(&second).result.unwrap();
        assert_eq!((first.reset(), second.reset()), (2, 2));
        let id = first.put(10 + round).unwrap();
        let item = received(&first);
        assert_eq!(item.id, id, "nothing is left of the inputs before");
        put_all(&second, [item.result.unwrap()]);
        assert_eq!(received(&second).result.unwrap(), (10 + round).pow(4));
        assert!(first.is_idle() && second.is_idle());
    }
}

#[test]
fn pending_counts_until_an_item_is_received() {
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).start().unwrap();
    assert!(stream.is_idle());
    stream.put(gate.pass(0)).unwrap();
    assert_eq!((stream.pending(), stream.is_idle()), (1, false));
    gate.open();
    received(&stream);
    assert_eq!((stream.pending(), stream.is_idle()), (0, true));
    assert!(stream.try_recv().is_none());
}

#[test]
fn close_is_bounded_and_the_builder_starts_again() {
    let _watchdog = Watchdog::new("close", BOUND);
    let pool = pool(2);
    let builder = pool.stream(sleeps);
    for _ in 0..3 {
        let stream = builder.clone().start().unwrap();
        put_all(&stream, (0..5).map(|_| 5));
        let report = stream.close(BOUND).unwrap();
        assert_eq!((report.put, report.dropped, report.pending), (5, 5, 0));
        assert_eq!(stream.put(1).unwrap_err().kind(), PutErrorKind::Finished);
        assert!(stream.recv().is_none());
        assert_eq!(stream.close(BOUND), Ok(report));
    }
    let gate = Gate::new();
    let stuck = pool.stream(pass).start().unwrap();
    stuck.put(gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let error = stuck.close(Duration::from_millis(50)).unwrap_err();
    assert_eq!((error.pending, error.total), (1, 1));
    assert_eq!(pool.submit(square, 3).unwrap().wait().unwrap(), 9, "the pool goes on");
    wait_until("the end of the task that hung", BOUND, || pool.worker_restarts() > 0);
}

fn reversed(buffer: SharedBuf) -> SharedBuf {
    buffer.iter().rev().copied().collect::<Vec<u8>>().into()
}

#[test]
fn shared_buffers_pass_through_a_stream() {
    let _watchdog = Watchdog::new("a stream of buffers", BOUND);
    let pool = pool(2);
    let plain = || pool.stream(reversed).ordered(true);
    for builder in [plain(), plain().seed(1), plain().workers(0)] {
        let stream = builder.start().unwrap();
        let inputs: Vec<Vec<u8>> =
            [0, 100, 300_000].map(|size| (0..=255).cycle().take(size).collect()).into();
        for input in &inputs {
            stream.put(input.clone().into()).unwrap();
        }
        for input in &inputs {
            assert!(received(&stream).result.unwrap().iter().eq(input.iter().rev()));
        }
    }
}

#[test]
fn a_stream_takes_more_once_its_pool_has_grown() {
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).per_worker(1).output(1).start().unwrap();
    let places = fill(&stream, &gate);
    pool.resize(2).unwrap();
    assert_eq!(stream.try_put(gate.pass(places)).map_err(|full| full.kind()), Ok(places));
    gate.open();
}

/// Returns a number that only this process has.
fn here(_: ()) -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    *NUMBER.get_or_init(|| u64::from(std::process::id()))
}

#[test]
fn a_stream_without_workers_runs_in_the_caller() {
    let pool = pool(2);
    let stream = pool.stream(here).workers(0).output(3).start().unwrap();
    for id in 0..3 {
        assert_eq!(stream.try_put(()).unwrap(), id);
    }
    assert_eq!(stream.try_put(()).unwrap_err().kind(), PutErrorKind::Full);
    stream.finish();
    for (id, item) in (0..).zip(&stream) {
        assert_eq!((item.id, item.worker, item.attempt), (id, None, 1));
        assert_eq!(item.result.unwrap(), u64::from(std::process::id()));
    }
    assert!(pool.worker_pids().is_empty(), "no worker was started");
    let panics = pool.stream(picky).workers(0).start().unwrap();
    panics.put(14).unwrap();
    let error = panics.recv().unwrap().result.unwrap_err();
    assert!(error.is_panic() && error.to_string().contains("common.rs:"), "{error}");
    panics.put(5).unwrap();
    assert_eq!((panics.reset(), panics.try_recv().is_none()), (1, true));
}

/// Returns its seed. Aborts in the first attempt of the seventh input.
fn seed(input: u64) -> Option<u64> {
    if input == 6 && attempt() == 1 {
        std::process::abort();
    }
    brigade::worker::seed()
}

/// Returns the seeds of 20 inputs.
fn seeds_of_stream(builder: StreamBuilder<'_, u64, Option<u64>>) -> Vec<Option<u64>> {
    let stream = builder.ordered(true).retries(1).start().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..20).for_each(|input| assert_eq!(stream.put(input).unwrap(), input));
            stream.finish();
        });
        (0..20).map(|_| received(&stream).result.unwrap()).collect()
    })
}

#[test]
fn seeds_depend_on_the_seed_and_the_input_alone() {
    let _watchdog = Watchdog::new("seeds", BOUND);
    let (one, three) = (pool(1), pool(3));
    let first = seeds_of_stream(one.stream(seed).seed(7));
    let unique: HashSet<_> = first.iter().flatten().collect();
    assert_eq!(unique.len(), 20);
    for pool in [&one, &three] {
        assert_eq!(seeds_of_stream(pool.stream(seed).seed(7)), first);
        let map = || pool.map(seed, 0..20).retries(1);
        for map in [map().seed(7), map().seed(7).chunk(20), map().seed(7).chunk(1)] {
            assert!(map.map(Result::unwrap).eq(first.iter().copied()));
        }
        let unordered = pool.map_unordered(seed, 0..20).seed(7).retries(1).map(Result::unwrap);
        assert_eq!(unordered.collect::<HashSet<_>>(), first.iter().copied().collect());
        let other = seeds_of_stream(pool.stream(seed).seed(8));
        assert!(other.iter().all(|seed| !first.contains(seed)));
        let alone = pool.submit(seed, 0).unwrap().wait().unwrap();
        assert!(!first.contains(&alone), "other tasks have no part");
    }
    let caller = three.stream(seed).seed(7).workers(0).start().unwrap();
    caller.put(0).unwrap();
    assert_eq!(received(&caller).result.unwrap(), first[0]);
    assert_eq!(brigade::worker::seed(), None);
    let by_key = one.map(&JOIN, [vec!["a".to_owned()]]).seed(7).next().unwrap();
    assert!(by_key.unwrap_err().to_string().contains("has no seed"));
}

#[test]
fn a_stream_of_fewer_workers_runs_as_many_tasks_at_a_time() {
    let _watchdog = Watchdog::new("a part of the workers", BOUND);
    let pool = pool(3);
    pool.warm_up().unwrap();
    let gate = Gate::new();
    let stream = pool.stream(pass).workers(1).per_worker(4).start().unwrap();
    fill(&stream, &gate);
    gate.wait_for_arrivals(1);
    // Tasks start in the order of submission, so these come after all of the stream's that wait in
    // the pool.
    for _ in 0..3 {
        outcome(pool.submit(square, 3).unwrap()).unwrap();
    }
    assert_eq!(gate.arrivals(), 1);
    gate.open();
    stream.finish();
    assert_eq!(stream.iter().count(), 8);
}

#[test]
fn a_stream_is_not_stopped_by_a_full_queue() {
    let _watchdog = Watchdog::new("a full queue", BOUND);
    let pool = builder(1).queue_limit(1).build().unwrap();
    let gate = Gate::new();
    let busy = pool.submit(pass, gate.pass(0)).unwrap();
    gate.wait_for_arrivals(1);
    let queued = pool.submit(pass, gate.pass(1)).unwrap();
    assert!(pool.try_submit(pass, gate.pass(2)).is_err());
    let stream = pool.stream(square).start().unwrap();
    put_all(&stream, 0..4);
    gate.open();
    stream.finish();
    assert_eq!(stream.iter().filter(|item| item.result.is_ok()).count(), 4);
    busy.wait().unwrap();
    queued.wait().unwrap();
}

#[test]
fn inputs_of_a_pool_that_has_ended_are_items_with_errors() {
    let _watchdog = Watchdog::new("a pool that ends", BOUND);
    let pool = pool(1);
    let stream = pool.stream(square).ordered(true).start().unwrap();
    put_all(&stream, 0..6);
    drop(pool);
    assert!(stream.try_put(6).unwrap_err().is_full());
    stream.finish();
    let results: Vec<_> = stream.iter().map(|item| item.result).collect();
    assert_eq!(results.len(), 6);
    assert!(results[..4].iter().all(Result::is_ok), "they were with the pool");
    let closed = |result: &Result<u64, brigade::TaskError>| {
        *result.as_ref().unwrap_err().kind() == TaskErrorKind::PoolClosed
    };
    assert!(results[4..].iter().all(closed), "{results:?}");
}

#[test]
fn dropping_a_stream_cancels_and_waits_for_nothing() {
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).start().unwrap();
    fill(&stream, &gate);
    gate.wait_for_arrivals(1);
    drop(stream);
    assert_eq!(gate.arrivals(), 1, "the drop has not waited");
    gate.open();
    assert_eq!(pool.submit(square, 2).unwrap().wait().unwrap(), 4);
    assert_eq!(gate.arrivals(), 1);
}

#[test]
fn a_slow_consumer_holds_no_worker() {
    let _watchdog = Watchdog::new("a stream beside one that rests", BOUND);
    let pool = pool(1);
    let rests = pool.stream(square).start().unwrap();
    while rests.try_put(1).is_ok() {}
    let runs = pool.stream(square).start().unwrap();
    for number in 0..500 {
        runs.put(number).unwrap();
        received(&runs);
    }
    assert_eq!(rests.pending(), 6);
    assert!(rests.report().most_finished <= 4);
}

#[test]
fn a_worker_that_is_stuck_keeps_one_input() {
    let _watchdog = Watchdog::new("one stuck worker", BOUND);
    let (pool, gate) = (pool(4), Gate::new());
    let stream = pool.stream(waits_at_a_gate).start().unwrap();
    let mut others = HashSet::new();
    let mut receive = || others.insert(received(&stream).worker.unwrap().slot);
    for number in 0..400 {
        if stream.is_full() {
            receive();
        }
        stream.put((number == 0).then(|| gate.pass(0))).unwrap();
    }
    stream.finish();
    while stream.report().delivered < 399 {
        receive();
    }
    gate.open();
    let last = received(&stream);
    assert_eq!(last.id, 0);
    assert!(!others.contains(&last.worker.unwrap().slot), "{others:?}");
}

fn waits_at_a_gate(gate: Option<Pass>) {
    gate.map(pass);
}

#[test]
fn streams_share_a_pool_fairly() {
    let _watchdog = Watchdog::new("two streams", BOUND);
    let pool = pool(2);
    pool.warm_up().unwrap();
    let streams = [(); 2].map(|()| pool.stream(spins).start().unwrap());
    let delivered = |index: usize| {
        let stream: &Stream<u64, u64> = &streams[index];
        while !stream.is_full() {
            stream.put(500).unwrap();
        }
        received(stream);
        stream.report().delivered
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            while delivered(1) < 400 {}
            streams[0].report().delivered
        });
        while delivered(0) < 400 && !other.is_finished() {}
        let delivered = [0, 1].map(|index| streams[index].report().delivered);
        assert!(delivered.iter().all(|count| *count >= 200), "{delivered:?}");
        for stream in &streams {
            assert!(stream.close(BOUND).is_ok());
        }
        // The other thread may wait for an item or for room.
        let _ = other.join();
    });
}

#[test]
fn a_stall_is_reported_by_the_consumer_that_waits() {
    let log = Log::get();
    let pool = pool(1);
    let gate = Gate::new();
    let stream = pool.stream(pass).label("held up").stall_after(Duration::from_millis(50));
    let stream = stream.start().unwrap();
    assert!(stream.recv_timeout(Duration::from_millis(200)).is_none(), "nothing is pending");
    fill(&stream, &gate);
    let words = ["no item", "held up", "waiting=2", "submitted=4", "oldest=0", "stack=thread"];
    // A busy machine may give no stack in time, and only one who waits hears of a stall.
    wait_until("a report with a stack", BOUND, || {
        assert!(stream.recv_timeout(Duration::from_millis(100)).is_none());
        log.has_line(&words)
    });
    gate.open();
    received(&stream);
}

#[test]
fn a_copy_of_the_process_cannot_use_a_stream() {
    use brigade_testkit::{Side, copy_process};
    let pool: Pool = pool(1);
    let stream = pool.stream(square).start().unwrap();
    stream.put(3).unwrap();
    match copy_process() {
        Side::Copy(copy) => copy.end_after(|| {
            assert_eq!(stream.put(1).unwrap_err().kind(), PutErrorKind::Forked);
            assert!(stream.recv().is_none() && stream.try_recv().is_none());
            assert_eq!((stream.reset(), stream.pending(), stream.is_full()), (0, 0, false));
            assert!(stream.close(BOUND).is_ok() && pool.stream(square).start().is_err());
            drop(stream);
        }),
        Side::Original(copy) => copy.assert_success(),
    }
    assert_eq!(received(&stream).result.unwrap(), 9);
}
