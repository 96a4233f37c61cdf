//! Checks what follows from tasks: `then` and `when_all`.

use std::future::{Future, poll_fn};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use brigade::{Handle, Pool, TaskErrorKind, when_all};
use brigade_integration::square;
use brigade_testkit::{BOUND, Gate, pass};
use futures::executor::block_on;

fn pool() -> Arc<Pool> {
    Arc::new(Pool::builder().workers(2).build().unwrap())
}

#[test]
fn a_task_follows_from_the_value_of_another() {
    let pool = pool();
    let again = |pool: &Arc<Pool>| {
        let pool = Arc::clone(pool);
        move |value| pool.submit(square, value)
    };
    let chain = pool.submit(square, 2).unwrap().then(again(&pool)).then(again(&pool));
    assert_eq!(chain.wait().unwrap(), 256);
}

#[test]
fn nothing_follows_from_a_failure() {
    let pool = pool();
    let (sender, called) = channel();
    let fails = |_: u64| -> u64 { panic!("no value") };
    let chain = pool.submit(fails, 1).unwrap().then({
        let pool = Arc::clone(&pool);
        move |value| {
            sender.send(()).unwrap();
            pool.submit(square, value)
        }
    });
    let error = chain.wait().unwrap_err();
    assert!(error.to_string().contains("no value"), "{error}");
    assert!(called.recv().is_err(), "it was called");
}

#[test]
fn a_refused_submission_is_the_end_of_its_chain() {
    let (pool, closed) = (pool(), pool());
    closed.shutdown().unwrap();
    let chain = pool.submit(square, 2).unwrap().then(move |value| closed.submit(square, value));
    assert!(matches!(chain.wait().unwrap_err().kind(), TaskErrorKind::PoolClosed));
}

#[test]
fn a_function_that_panics_ends_its_chain() {
    let pool = pool();
    let panics = |_: u64| -> Handle<u64> { panic!("no task") };
    let chain = pool.submit(square, 2).unwrap().then(panics);
    assert!(matches!(chain.wait().unwrap_err().kind(), TaskErrorKind::Cancelled));
    let chain = pool.submit(square, 2).unwrap().then(panics).then(panics);
    assert!(matches!(chain.wait().unwrap_err().kind(), TaskErrorKind::Cancelled));
}

#[test]
fn all_outcomes_come_in_the_order_of_their_tasks() {
    let pool = pool();
    let some = |x: u64| if x == 3 { panic!("no threes") } else { x };
    let all = when_all((0..6).map(|x| pool.submit(some, x)));
    for (x, outcome) in (0..).zip(all.wait().unwrap()) {
        match outcome {
            Ok(value) => assert_eq!(value, x),
            Err(error) => assert!(x == 3 && error.to_string().contains("no threes"), "{error}"),
        }
    }
    assert!(when_all(Vec::<Handle<u64>>::new()).wait().unwrap().is_empty());
    let nested = (1..3).map(|x| when_all([pool.submit(square, x)]));
    let nested = when_all(nested).wait().unwrap().into_iter().flatten().flatten();
    assert_eq!(nested.collect::<Result<Vec<_>, _>>().unwrap(), [1, 4]);
}

#[test]
fn waiting_for_a_chain_has_a_bound() {
    let (pool, gate) = (pool(), Gate::new());
    let mut chain = when_all([pool.submit(pass, gate.pass(7))]);
    assert!(!chain.is_done() && chain.wait_timeout(Duration::from_millis(1)).is_none());
    gate.open();
    let values: Result<Vec<_>, _> =
        chain.wait_timeout(BOUND).unwrap().unwrap().into_iter().collect();
    assert_eq!(values.unwrap(), [7]);
    assert!(chain.wait_timeout(BOUND).is_none());
}

#[test]
fn a_chain_is_a_future() {
    let (pool, gate) = (pool(), Gate::new());
    let mut chain = Box::pin(pool.submit(pass, gate.pass(3)).unwrap().then({
        let pool = Arc::clone(&pool);
        move |value| pool.submit(square, value)
    }));
    let value = block_on(async {
        // The first poll leaves a waker, and then the gate opens.
        assert!(poll_fn(|context| Poll::Ready(chain.as_mut().poll(context))).await.is_pending());
        gate.open();
        chain.await
    });
    assert_eq!(value.unwrap(), 9);
}

#[test]
fn a_callback_cannot_wait_for_a_chain() {
    let pool = pool();
    let found = Arc::new(Mutex::new(None));
    let chain = pool.submit(square, 2).unwrap().then({
        let (pool, found) = (Arc::clone(&pool), Arc::clone(&found));
        move |value| {
            let inner = when_all([pool.submit(square, value)]);
            let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| inner.wait()));
            *found.lock().unwrap() = Some(waited.is_err());
            pool.submit(square, value)
        }
    });
    assert_eq!(chain.wait().unwrap(), 16);
    assert_eq!(*found.lock().unwrap(), Some(true));
}
