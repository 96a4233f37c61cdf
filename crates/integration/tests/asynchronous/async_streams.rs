//! Maps and handles in the order of completion, as streams.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::collections::BTreeSet;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use brigade::{Pool, as_completed};
use brigade_integration::{builder, picky, pool, square};
use brigade_testkit::faults::spins;
use brigade_testkit::{BOUND, Gate, PATIENCE, Watchdog, pass, repetitions, wait_until};
use futures::executor::block_on;
use futures::{Stream, StreamExt};

const MANY: u64 = 20_000 / PATIENCE;

async fn use_streams(pool: &Pool) {
    let squares = pool.map(square, 0..MANY).into_stream();
    let squares: Vec<_> = squares.map(|square| square.expect("a value")).collect().await;
    assert!(squares.into_iter().eq((0..MANY).map(square)));
    let squares = pool.map_unordered(square, 0..MANY).into_stream();
    let squares: BTreeSet<_> = squares.map(|square| square.expect("a value")).collect().await;
    assert!(squares.into_iter().eq((0..MANY).map(square)));
    let handles = (0..500).map(|number| pool.submit(square, number).expect("an open pool"));
    let handles = as_completed(handles.collect::<Vec<_>>()).into_stream();
    assert_eq!(handles.size_hint(), (500, Some(500)));
    let squares: BTreeSet<_> =
        handles.then(|it| async { it.await.expect("a value") }).collect().await;
    assert!(squares.into_iter().eq((0..500).map(square)));
}

#[test]
fn streams_yield_everything_in_any_executor() {
    let _watchdog = Watchdog::new("streams of maps and handles", BOUND);
    let pool = Arc::new(pool(2));
    block_on(use_streams(&pool));
    let current = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    current.block_on(use_streams(&pool));
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let threads = threads.expect("a runtime");
    let of_task = Arc::clone(&pool);
    let task = threads.spawn(async move { use_streams(&of_task).await });
    threads.block_on(task).expect("no panic");
}

#[test]
fn failures_and_divided_chunks_reach_a_stream() {
    let _watchdog = Watchdog::new("a stream with failures", BOUND);
    let pool = pool(2);
    let results: Vec<_> = block_on(pool.map(picky, 0..200).into_stream().collect());
    assert_eq!(results.len(), 200);
    for (number, result) in (0..).zip(results) {
        assert_eq!(result.is_err(), number % 7 == 0 || number == 50, "{number}");
    }
    // The first chunks are divided, because their items take long.
    let spun = pool.map_unordered(spins, [300_u64; 100]).into_stream();
    assert_eq!(block_on(spun.count()), 100);
}

#[test]
fn a_map_becomes_a_stream_with_chunks_under_way() {
    let _watchdog = Watchdog::new("a map that becomes a stream", BOUND);
    let pool = pool(2);
    for taken in [1, 100] {
        let mut map = pool.map(square, 0..MANY);
        assert!(map.by_ref().take(taken).all(|square| square.is_ok()));
        let rest = block_on(map.into_stream().count());
        assert_eq!(rest, usize::try_from(MANY).expect("a number") - taken);
    }
}

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

fn poll<S: Stream>(stream: Pin<&mut S>, count: &Arc<Count>) -> Poll<Option<S::Item>> {
    stream.poll_next(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
}

#[test]
fn a_pending_stream_is_woken_by_its_next_item() {
    let pool = pool(2);
    let gates = [(); 2].map(|()| Gate::new());
    let [map, completed]: [Arc<Count>; 2] = Default::default();
    let mut results = pin!(pool.map(pass, [gates[0].pass(1)]).into_stream());
    assert!(poll(results.as_mut(), &map).is_pending());
    let handle = pool.submit(pass, gates[1].pass(2)).expect("an open pool");
    let mut handles = pin!(as_completed([handle]).into_stream());
    assert!(poll(handles.as_mut(), &completed).is_pending());
    assert_eq!(map.0.load(Ordering::Acquire) + completed.0.load(Ordering::Acquire), 0);
    for (gate, count) in gates.iter().zip([&map, &completed]) {
        gate.open();
        wait_until("the waker", BOUND, || count.0.load(Ordering::Acquire) == 1);
    }
    assert!(matches!(poll(results.as_mut(), &map), Poll::Ready(Some(Ok(1)))));
    assert!(matches!(poll(results.as_mut(), &map), Poll::Ready(None)));
    assert!(matches!(poll(handles.as_mut(), &completed), Poll::Ready(Some(_))));
    assert!(matches!(poll(handles.as_mut(), &completed), Poll::Ready(None)));
}

#[test]
fn a_stream_of_a_map_does_not_wait_for_room_in_the_queue() {
    let _watchdog = Watchdog::new("a stream beside a full queue", BOUND);
    let pool = builder(1).queue_limit(1).build().expect("a pool");
    let gate = Gate::new();
    let blocks = pool.submit(pass, gate.pass(1)).expect("room");
    gate.wait_for_arrivals(1);
    while let Ok(handle) = pool.try_submit(square, 1) {
        drop(handle);
    }
    let count = Arc::default();
    let mut squares = pin!(pool.map(square, 0..100).into_stream());
    assert!(poll(squares.as_mut(), &count).is_pending());
    gate.open();
    assert_eq!(block_on(squares.count()), 100);
    assert_eq!(block_on(blocks).expect("a value"), 1);
}

/// A future that begins to wait while the outcome of the only task arrives. It slept on about once
/// in three thousand times: the task was over, so that it took no waker, and not yet among those
/// that had finished.
#[test]
fn a_future_sleeps_through_no_outcome() {
    let watchdog = Watchdog::new("the only task of a stream, a map or a set of handles", BOUND);
    let pool = pool(2);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    for _ in 0..repetitions(2_000) {
        watchdog.progress();
        let mut stream = pool.stream(square).start().expect("an open pool");
        stream.put(4).expect("room");
        stream.finish();
        let item = runtime.block_on(stream.next()).expect("an item");
        assert_eq!(item.result.expect("a value"), 16);
        assert!(runtime.block_on(stream.next()).is_none());
        let mut squares = pin!(pool.map(square, [4]).into_stream());
        assert_eq!(runtime.block_on(squares.next()).expect("an item").expect("a value"), 16);
        let handle = pool.submit(square, 4).expect("an open pool");
        let mut handles = pin!(as_completed([handle]).into_stream());
        let handle = runtime.block_on(handles.next()).expect("a handle");
        assert_eq!(handle.wait().expect("a value"), 16);
    }
}
