//! A handle is awaited under tokio, under smol's executor and under that of the `futures` crate.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use async_executor::Executor;
use brigade::{Handle, TaskError};
use brigade_integration::pool;
use brigade_testkit::faults::{aborts, spins};
use brigade_testkit::{BOUND, Gate, PATIENCE, Watchdog, outcome, pass};
use futures::channel::oneshot;
use futures::executor::{ThreadPool, block_on};
use futures::future::{Either, join_all, ready, select};
use futures::stream::{FuturesUnordered, StreamExt};
use futures::task::SpawnExt;

/// Enough for completions, polls and wake-ups to overlap in every way.
const MANY: u64 = 10_000 / PATIENCE;

fn square(number: u64) -> u64 {
    number * number
}

fn submit(pool: &brigade::Pool, count: u64) -> Vec<Handle<u64>> {
    (0..count).map(|number| pool.submit(square, number).unwrap()).collect()
}

/// Runs the same futures in each executor: one after the other, many at once, and a failure.
async fn await_them(pool: &brigade::Pool) {
    let first = pool.submit(square, 3).unwrap().await.unwrap();
    assert_eq!(pool.submit(square, first).unwrap().await.unwrap(), 81);
    let squares: Result<Vec<_>, TaskError> =
        join_all(submit(pool, 100)).await.into_iter().collect();
    assert!(squares.unwrap().into_iter().eq((0..100).map(square)));
    assert!(pool.submit(aborts, ()).unwrap().await.unwrap_err().is_worker_death());
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

#[test]
fn handles_are_awaited_under_tokio() {
    let _watchdog = Watchdog::new("handles under tokio", BOUND);
    let (pool, runtime) = (pool(2), tokio());
    runtime.block_on(await_them(&pool));
    let tasks: Vec<_> =
        submit(&pool, MANY).into_iter().map(|handle| runtime.spawn(handle)).collect();
    let squares = runtime.block_on(join_all(tasks));
    assert!(squares.into_iter().map(|square| square.unwrap().unwrap()).eq((0..MANY).map(square)));
}

#[test]
fn handles_are_awaited_under_smol() {
    let _watchdog = Watchdog::new("handles under smol's executor", BOUND);
    let pool = pool(2);
    let executor = Executor::new();
    let (stop, stopped) = oneshot::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(|| block_on(executor.run(stopped)));
        block_on(executor.run(await_them(&pool)));
        let tasks: Vec<_> =
            submit(&pool, MANY).into_iter().map(|handle| executor.spawn(handle)).collect();
        let squares = block_on(executor.run(join_all(tasks)));
        assert!(squares.into_iter().map(Result::unwrap).eq((0..MANY).map(square)));
        stop.send(()).unwrap();
    });
}

#[test]
fn handles_are_awaited_under_the_futures_executors() {
    let _watchdog = Watchdog::new("handles under the executors of the futures crate", BOUND);
    let pool = pool(2);
    block_on(await_them(&pool));
    let threads = ThreadPool::builder().pool_size(2).create().unwrap();
    let tasks: Vec<_> = submit(&pool, MANY)
        .into_iter()
        .map(|handle| threads.spawn_with_handle(handle).unwrap())
        .collect();
    let squares = block_on(join_all(tasks));
    assert!(squares.into_iter().map(Result::unwrap).eq((0..MANY).map(square)));
}

#[test]
fn ten_thousand_futures_resolve_in_completion_order() {
    let _watchdog = Watchdog::new("ten thousand futures", BOUND);
    let pool = pool(2);
    let futures: FuturesUnordered<_> = submit(&pool, MANY).into_iter().collect();
    let squares: BTreeSet<_> = block_on(futures.map(Result::unwrap).collect());
    assert!(squares.into_iter().eq((0..MANY).map(square)));
}

#[test]
fn the_loser_of_a_select_may_be_awaited_later_or_dropped() {
    let _watchdog = Watchdog::new("the winner of a select", BOUND);
    let pool = pool(2);
    for keep in [true, false] {
        let gate = Gate::new();
        let slow = pool.submit(pass, gate.pass(1)).unwrap();
        let quick = pool.submit(spins, 5).unwrap();
        let Either::Right((winner, loser)) = block_on(select(slow, quick)) else {
            panic!("a task that is held up has won");
        };
        assert_eq!(winner.unwrap(), 5);
        if keep {
            gate.open();
            assert_eq!(block_on(loser).unwrap(), 1);
        }
    }
    assert_eq!(block_on(pool.submit(square, 5).unwrap()).unwrap(), 25);
}

#[test]
fn a_dropped_future_lets_its_task_run() {
    let (pool, runtime) = (pool(1), tokio());
    let gate = Gate::new();
    let mut handle = pool.submit(pass, gate.pass(1)).unwrap();
    let timeout = Duration::from_millis(5);
    runtime.block_on(async {
        tokio::time::timeout(timeout, &mut handle).await.unwrap_err();
    });
    gate.open();
    assert_eq!(outcome(handle).unwrap(), 1);
}

#[test]
fn a_pending_future_may_move_to_another_executor() {
    let _watchdog = Watchdog::new("a future that has moved", BOUND);
    let (pool, runtime) = (pool(1), tokio());
    let gate = Gate::new();
    let handle = pool.submit(pass, gate.pass(1)).unwrap();
    // Polled here once, so that this thread's waker is the known one; then by tokio, with its own.
    let Either::Right(((), handle)) = block_on(select(handle, ready(()))) else {
        panic!("a task that is held up has ended");
    };
    let task = runtime.spawn(handle);
    gate.open();
    assert_eq!(runtime.block_on(task).unwrap().unwrap(), 1);
}
