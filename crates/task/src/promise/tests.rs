//! Tests of a promise with the plainest content.

use std::task::Waker;

use brigade_wire::codec::{self, CodecError};
use serde::de::DeserializeOwned;

use super::*;
use crate::bytes;
use crate::completion_queue::Woken;
use crate::error::{TaskError, TaskErrorKind};

/// The bytes of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl From<bytes::Bytes> for Bytes {
    fn from(bytes: bytes::Bytes) -> Self {
        Self(bytes.to_vec())
    }
}

impl Value for Bytes {
    fn into_bytes(self) -> Result<bytes::Bytes, Self> {
        Ok(bytes::Bytes::copy(&self.0))
    }

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
    type Argument = ();
    type Value = Bytes;

    fn id(&self) -> TaskId {
        TaskId::new(1)
    }

    fn ended(&self) -> &AtomicBool {
        &self.0
    }

    fn label(&self) -> Option<&Arc<str>> {
        None
    }

    fn executor(&self) -> &Arc<dyn Backend<Self>> {
        unreachable!("nobody waits by an executor")
    }
}

pub(super) type TestPromise = Promise<TestFacts>;

pub(super) fn promise() -> TestPromise {
    Promise::new(TestFacts(AtomicBool::new(false)), Content::NOTHING)
}

pub(super) fn complete(promise: &TestPromise, outcome: Outcome<Bytes>) -> Option<Woken> {
    promise.complete(outcome).and_then(Content::into_waiters).map(|waiters| waiters.notify())
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
    assert!(wakeups.wakers.is_empty());
    assert_eq!((first.take(), second.take(), gone.take()), (Some(5), Some(7), None));
    promise.watch(&gone, 6);
    assert_eq!(gone.take(), Some(6), "the outcome is there");
}

#[test]
fn a_future_between_an_outcome_and_its_token_is_woken() {
    let (promise, completions) = (promise(), Arc::<CompletionQueue>::default());
    promise.watch(&completions, 3);
    let before = promise.complete(value(1)).unwrap();
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

#[test]
fn an_argument_stays_while_somebody_waits() {
    let promise = promise();
    *promise.content() = Content::FewArgument(few(7));
    let is_kept = || match promise.content().argument() {
        Some(Content::FewArgument(argument)) => **argument == [7],
        _ => false,
    };
    assert!(is_kept());
    let completions = Arc::default();
    promise.watch(&completions, 1);
    assert!(promise.content().waiters().is_some() && is_kept());
    promise.unwatch(&completions);
    assert!(promise.content().waiters().is_none() && is_kept());
}

fn few(byte: u8) -> bytes::Few {
    match bytes::Bytes::copy(&[byte]) {
        bytes::Bytes::Few(few) => few,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_of_any_length_is_returned_as_it_was() {
    for length in [0, 1, 14, 15, 4096] {
        let bytes: Vec<u8> = (0..=255).cycle().take(length).collect();
        let promise = promise();
        assert!(complete(&promise, Ok(Bytes(bytes.clone()))).is_none());
        assert!(promise.content().argument().is_none());
        assert_eq!(promise.try_take().unwrap().unwrap(), Bytes(bytes));
        assert!(promise.try_take().is_none());
    }
}
