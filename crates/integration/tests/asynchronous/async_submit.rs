//! Submissions that wait for room as futures, and handles that end their tasks when dropped.

#![expect(clippy::expect_used, reason = "a test stops where a value is missing")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use brigade::pool::SubmitFuture;
use brigade::{Handle, Pool, Shutdown, SubmitErrorKind};
use brigade_integration::{builder, pool, square};
use brigade_testkit::faults::hangs;
use brigade_testkit::{BOUND, Gate, PATIENCE, Watchdog, outcome, pass, wait_until};
use futures::executor::block_on;
use futures::future::join_all;

/// Enough for submissions and outcomes to overlap in every way.
const MANY: u64 = 2_000 / PATIENCE;

/// Counts its wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

fn poll<A, R>(future: &mut SubmitFuture<A, R>, count: &Arc<Count>) -> Poll<Option<Handle<R>>> {
    let waker = Waker::from(Arc::clone(count));
    Pin::new(future).poll(&mut Context::from_waker(&waker)).map(Result::ok)
}

/// A pool whose only worker runs a task at a gate, and whose queue is full.
struct Full {
    pool: Pool,
    gate: Gate,
    accepted: Vec<Handle<u64>>,
}

impl Full {
    fn new() -> Self {
        let pool = builder(1).queue_limit(1).build().expect("a pool");
        let gate = Gate::new();
        let mut accepted = vec![pool.submit(pass, gate.pass(0)).expect("room")];
        gate.wait_for_arrivals(1);
        while let Ok(handle) = pool.try_submit(square, 1) {
            accepted.push(handle);
        }
        Self { pool, gate, accepted }
    }

    fn finish(self) -> Pool {
        self.gate.open();
        for handle in self.accepted {
            outcome(handle).expect("a value");
        }
        self.pool
    }
}

async fn submit_many(pool: &Pool) {
    let squares = join_all((0..MANY).map(|number| async move {
        pool.submit_async(square, number).await.expect("an open pool").await.expect("a value")
    }));
    assert!(squares.await.into_iter().eq((0..MANY).map(square)));
}

#[test]
fn many_futures_share_a_short_queue_in_any_executor() {
    let _watchdog = Watchdog::new("many submissions as futures", BOUND);
    let pool = Arc::new(builder(2).queue_limit(3).build().expect("a pool"));
    block_on(submit_many(&pool));
    let current = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    current.block_on(submit_many(&pool));
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
    let threads = threads.expect("a runtime");
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let pool = Arc::clone(&pool);
            threads.spawn(async move { submit_many(&pool).await })
        })
        .collect();
    for task in tasks {
        threads.block_on(task).expect("no panic");
    }
}

#[test]
fn a_future_waits_for_room_and_is_woken_by_it() {
    let full = Full::new();
    let count = Arc::default();
    let mut future = full.pool.submit_async(square, 3);
    assert!(poll(&mut future, &count).is_pending());
    assert!(poll(&mut future, &count).is_pending());
    assert_eq!(count.get(), 0);
    full.gate.open();
    wait_until("room", BOUND, || count.get() == 1);
    let Poll::Ready(Some(handle)) = poll(&mut future, &count) else { panic!("there is room") };
    assert_eq!(outcome(handle).expect("a value"), 9);
    full.finish();
}

#[test]
fn a_dropped_future_submits_nothing_and_lets_others_pass() {
    let full = Full::new();
    let (first, second) = (Arc::default(), Arc::default());
    let mut leaves = full.pool.submit_async(square, 3);
    let mut stays = full.pool.submit_async(square, 4);
    assert!(poll(&mut leaves, &first).is_pending());
    assert!(poll(&mut stays, &second).is_pending());
    full.gate.open();
    wait_until("room", BOUND, || first.get() == 1);
    drop(leaves);
    wait_until("the next future", BOUND, || second.get() == 1);
    let Poll::Ready(Some(handle)) = poll(&mut stays, &second) else { panic!("there is room") };
    assert_eq!(outcome(handle).expect("a value"), 16);
    let accepted = full.accepted.len() as u64;
    let pool = full.finish();
    assert_eq!(pool.snapshot().enqueued, accepted + 1);
}

#[test]
fn a_refused_submission_returns_the_argument() {
    let full = Full::new();
    let count = Arc::default();
    let mut waits = full.pool.submit_async(|text: String| text, "waits".to_owned());
    assert!(poll(&mut waits, &count).is_pending());
    full.gate.open();
    full.pool.shutdown_with(Shutdown::Kill, BOUND).expect("a shutdown");
    wait_until("the end of the pool", BOUND, || count.get() == 1);
    let late = full.pool.submit_async(|text: String| text, "late".to_owned());
    for (future, text) in [waits, late].into_iter().zip(["waits", "late"]) {
        let error = block_on(future).expect_err("the pool has ended");
        assert_eq!(*error.kind(), SubmitErrorKind::PoolClosed);
        assert_eq!(error.into_argument(), text);
    }
}

#[test]
fn dropping_an_aborting_handle_ends_a_running_task() {
    let _watchdog = Watchdog::new("the end of an aborted task", BOUND);
    let pool = pool(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(async {
        let task = pool.submit_async(hangs, ()).await.expect("an open pool").abort_on_drop();
        tokio::time::timeout(Duration::from_millis(20), task).await.expect_err("it hangs");
        // The only worker is free again.
        let task = pool.submit_async(square, 5).await.expect("an open pool").abort_on_drop();
        assert_eq!(task.await.expect("a value"), 25);
    });
    assert!(pool.worker_restarts() <= 1);
}

#[test]
fn an_aborting_handle_cancels_a_queued_task_or_lets_it_go() {
    let full = Full::new();
    drop(full.pool.submit_async(square, 3));
    let pool = builder(1).build().expect("a pool");
    let gate = Gate::new();
    let blocks = pool.submit(pass, gate.pass(1)).expect("room");
    gate.wait_for_arrivals(1);
    drop(pool.submit(square, 3).expect("room").abort_on_drop());
    let kept = pool.submit(square, 4).expect("room").abort_on_drop().into_handle();
    gate.open();
    assert_eq!(outcome(kept).expect("a value"), 16);
    outcome(blocks).expect("a value");
    assert_eq!(pool.snapshot().cancelled, 1);
    assert_eq!(pool.worker_restarts(), 0);
    full.finish();
}
