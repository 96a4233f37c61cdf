//! Tests of a single task cell: its outcome and its waiters.

use super::*;
use crate::completion_queue::CompletionQueue;
use crate::error::{TaskError, TaskErrorKind};
use crate::function_ref::FunctionRef;
use brigade_worker::function_of;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

pub(crate) fn cell() -> TaskCell {
    let nothing = |(): ()| ();
    let function = FunctionRef::of(function_of::<_, (), ()>(nothing)).unwrap();
    TaskCell::new(&Arc::default(), TaskId::new(1), function, Argument::EMPTY, None, None)
}

pub(crate) fn value(byte: u8) -> Value {
    Value::Inline(vec![byte].into())
}

#[test]
fn a_second_outcome_changes_nothing() {
    let cell = cell();
    assert!(cell.complete(Ok(value(1))).waiters.is_none());
    // A build with debug assertions panics where a release build ignores the bug.
    let second = catch_unwind(AssertUnwindSafe(|| cell.complete(Ok(value(2))).waiters.is_some()));
    assert_eq!(second.is_err(), cfg!(debug_assertions));
    assert_eq!(cell.try_take().unwrap().unwrap().decode::<u8>().unwrap(), 1);
    assert!(cell.try_take().is_none());
}

#[test]
fn the_kind_of_an_outcome_outlives_its_taking() {
    let outcomes = [
        (Ok(value(1)), OutcomeKind::Value),
        (Err(TaskError::new(TaskErrorKind::Killed)), OutcomeKind::Failure),
        (Err(TaskError::new(TaskErrorKind::Cancelled)), OutcomeKind::Cancelled),
    ];
    for (outcome, outcome_kind) in outcomes {
        let cell = cell();
        assert_eq!(cell.outcome_kind(), None);
        assert!(cell.complete(outcome).waiters.is_none());
        assert_eq!(cell.outcome_kind(), Some(outcome_kind));
        assert!(cell.try_take().is_some());
        assert_eq!(cell.outcome_kind(), Some(outcome_kind));
    }
}

#[test]
fn every_watching_queue_gets_the_task_unless_it_unwatched() {
    let cell = cell();
    let [first, second, gone] = std::array::from_fn(|_| Arc::<CompletionQueue>::default());
    for (completions, token) in [(&first, 5), (&gone, 6), (&second, 7)] {
        cell.watch(completions, token);
    }
    cell.unwatch(&gone);
    assert_eq!(Arc::strong_count(&gone), 1);
    let wakeups = cell.complete(Ok(value(1))).waiters.unwrap().notify();
    assert!(!wakeups.ring_doorbell, "nobody sleeps at a doorbell");
    assert!(wakeups.waker.is_none());
    assert_eq!((first.take(), second.take(), gone.take()), (Some(5), Some(7), None));
    cell.watch(&gone, 6);
    assert_eq!(gone.take(), Some(6), "the outcome is there");
}

#[test]
fn a_future_that_begins_to_wait_between_an_outcome_and_its_token_is_woken() {
    let (cell, completions) = (cell(), Arc::<CompletionQueue>::default());
    cell.watch(&completions, 3);
    let waiters = cell.complete(Ok(value(1))).waiters.unwrap();
    assert!(completions.add_waker(Waker::noop()).is_empty(), "there is room for it");
    assert!(completions.is_pending(), "it would sleep now");
    assert!(waiters.has_waker());
    assert_eq!(waiters.notify().wakers.len(), 1);
    assert_eq!(completions.take(), Some(3));
}

#[test]
fn unwatching_frees_waiters_that_nobody_else_uses() {
    let cell = cell();
    let completions = Arc::default();
    cell.watch(&completions, 1);
    cell.unwatch(&completions);
    assert!(cell.content().waiters().is_none());
    cell.set_waker(Waker::noop());
    cell.watch(&completions, 1);
    cell.unwatch(&completions);
    assert!(cell.content().waiters().is_some(), "somebody else still waits");
}

#[test]
fn large_memory_outlives_the_completion() {
    let arena = brigade_sys::arena::ArgumentArena::create("test", 1 << 20, 1 << 20).unwrap();
    let large = vec![7_u8; 128 << 10];
    let arguments =
        [Argument::of(large.clone(), Some(&arena)), Argument::Inline(large.clone().into())];
    for argument in arguments {
        let nothing = |(): ()| ();
        let function = FunctionRef::of(function_of::<_, (), ()>(nothing)).unwrap();
        let cell = TaskCell::new(&Arc::default(), TaskId::new(1), function, argument, None, None);
        let Completed { argument, is_large, .. } = cell.complete(Ok(value(1)));
        assert_eq!(argument.expect("freed by whoever completes it").as_bytes(), large);
        assert!(!is_large);
    }
    let cell = cell();
    let completed = cell.complete(Ok(Value::Inline(large.into())));
    assert!(completed.is_large && completed.argument.is_none());
}

/// Each queued task has one. With the allocator's 8 bytes that is a multiple of 16.
#[test]
fn a_cell_with_its_counter_and_lock_takes_56_bytes() {
    assert_eq!(8 + size_of::<Facts>() + size_of::<Content>(), 56);
}
