//! Tests of a promise with the plainest content.

use std::task::Waker;

use brigade_wire::codec::{self, CodecError};
use serde::de::DeserializeOwned;

use super::*;
use crate::error::{TaskError, TaskErrorKind};
use crate::plain::Plain;
use crate::waiters::Wakeups;

/// The bytes of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Value for Bytes {
    fn share(&mut self) -> Self {
        self.clone()
    }

    fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        codec::decode(&self.0)
    }
}

#[derive(Debug)]
pub(super) struct TestFacts(AtomicBool);

impl Facts for TestFacts {
    fn id(&self) -> TaskId {
        TaskId::new(1)
    }

    fn ended(&self) -> &AtomicBool {
        &self.0
    }
}

pub(super) type TestPromise = Promise<TestFacts, Plain<Bytes>>;

pub(super) fn promise() -> TestPromise {
    Promise::new(TestFacts(AtomicBool::new(false)), Plain::default())
}

pub(super) fn complete(promise: &TestPromise, outcome: Outcome<Bytes>) -> Option<Wakeups<()>> {
    let before = promise.complete(outcome, |(), _| {});
    before.and_then(Plain::into_waiters).map(|waiters| waiters.notify())
}

#[expect(clippy::unnecessary_wraps, reason = "tests complete with outcomes")]
pub(super) fn value(byte: u8) -> Outcome<Bytes> {
    Ok(Bytes(vec![byte]))
}

#[test]
fn a_second_outcome_changes_nothing() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let promise = promise();
    assert!(complete(&promise, value(1)).is_none());
    // A build with debug assertions panics where a release build ignores the mistake.
    let second = catch_unwind(AssertUnwindSafe(|| complete(&promise, value(2)).is_some()));
    assert_eq!(second.is_err(), cfg!(debug_assertions));
    assert_eq!(promise.try_take().unwrap().unwrap(), Bytes(vec![1]));
    assert!(promise.try_take().is_none());
}

#[test]
fn the_kind_of_an_outcome_outlives_its_taking() {
    let outcomes = [
        (value(1), OutcomeKind::Value),
        (Err(TaskError::new(TaskErrorKind::PoolClosed)), OutcomeKind::Failure),
        (Err(TaskError::new(TaskErrorKind::Killed)), OutcomeKind::Killed),
        (Err(TaskError::new(TaskErrorKind::Cancelled)), OutcomeKind::Cancelled),
    ];
    for (outcome, kind) in outcomes {
        let promise = promise();
        assert_eq!(promise.outcome_kind(), None);
        assert!(complete(&promise, outcome).is_none());
        assert_eq!(promise.outcome_kind(), Some(kind));
        assert!(promise.try_take().is_some());
        assert_eq!(promise.outcome_kind(), Some(kind));
    }
}

#[test]
fn every_watching_queue_gets_the_task_unless_it_unwatched() {
    let promise = promise();
    let [first, second, gone] = std::array::from_fn(|_| Arc::<CompletionQueue>::default());
    for (completions, token) in [(&first, 5), (&gone, 6), (&second, 7)] {
        promise.watch(completions, token);
    }
    promise.unwatch(&gone);
    assert_eq!(Arc::strong_count(&gone), 1);
    let wakeups = complete(&promise, value(1)).unwrap();
    assert!(!wakeups.ring_doorbell, "nobody sleeps at a doorbell");
    assert!(wakeups.waker.is_none());
    assert_eq!((first.take(), second.take(), gone.take()), (Some(5), Some(7), None));
    promise.watch(&gone, 6);
    assert_eq!(gone.take(), Some(6), "the outcome is there");
}

#[test]
fn a_future_between_an_outcome_and_its_token_is_woken() {
    let (promise, completions) = (promise(), Arc::<CompletionQueue>::default());
    promise.watch(&completions, 3);
    let before = promise.complete(value(1), |(), _| {}).unwrap();
    let waiters = before.into_waiters().unwrap();
    assert!(completions.add_waker(Waker::noop()).is_empty(), "there is room for it");
    assert!(completions.is_pending(), "it would sleep now");
    assert!(waiters.has_waker());
    assert_eq!(waiters.notify().wakers.len(), 1);
    assert_eq!(completions.take(), Some(3));
}

#[test]
fn unwatching_frees_waiters_that_nobody_else_uses() {
    let promise = promise();
    let completions = Arc::default();
    promise.watch(&completions, 1);
    promise.unwatch(&completions);
    assert!(promise.content().waiters().is_none());
    promise.set_waker(Waker::noop());
    promise.watch(&completions, 1);
    promise.unwatch(&completions);
    assert!(promise.content().waiters().is_some(), "somebody else still waits");
}
