//! A cell by itself: its outcome, and those that watch it.

use super::*;
use crate::error::TaskErrorKind;
use brigade_worker::function_of;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn cell() -> Arc<TaskCell> {
    let nothing = |(): ()| ();
    let callee = Callee::of(function_of::<_, (), ()>(nothing)).unwrap();
    TaskCell::new(TaskId::new(1), callee, Argument::Inline(Vec::new()), None, None)
}

fn value(byte: u8) -> Value {
    Value::Inline(vec![byte])
}

#[test]
fn the_first_outcome_stays() {
    let cell = cell();
    assert!(cell.complete(Ok(value(1))).watch.is_none());
    // A build with debug assertions says what a release passes over.
    let second = catch_unwind(AssertUnwindSafe(|| cell.complete(Ok(value(2))).watch.is_some()));
    assert_eq!(second.is_err(), cfg!(debug_assertions));
    assert_eq!(cell.try_take().unwrap().unwrap().decode::<u8>().unwrap(), 1);
    assert!(cell.try_take().is_none());
}

#[test]
fn the_kind_of_an_outcome_is_known_after_it_was_taken() {
    let endings = [
        (Ok(value(1)), Ending::Value),
        (Err(TaskError::new(TaskErrorKind::Killed)), Ending::Failure),
        (Err(TaskError::new(TaskErrorKind::Cancelled)), Ending::Cancelled),
    ];
    for (outcome, ending) in endings {
        let cell = cell();
        assert_eq!(cell.ending(), None);
        assert!(cell.complete(outcome).watch.is_none());
        assert_eq!(cell.ending(), Some(ending));
        assert!(cell.try_take().is_some());
        assert_eq!(cell.ending(), Some(ending));
    }
}

#[test]
fn each_of_several_that_watch_is_told_and_who_gives_up_leaves_nothing() {
    let cell = cell();
    let [first, second, gone] = std::array::from_fn(|_| Arc::<Arrivals>::default());
    for (arrivals, name) in [(&first, 5), (&gone, 6), (&second, 7)] {
        cell.watch(arrivals, name);
    }
    cell.unwatch(&gone);
    assert_eq!(Arc::strong_count(&gone), 1);
    let told = cell.complete(Ok(value(1))).watch.unwrap().tell();
    assert!(!told.at_the_doorbell, "nobody sleeps at a doorbell");
    assert!(told.waker.is_none());
    assert_eq!((first.take(), second.take(), gone.take()), (Some(5), Some(7), None));
    cell.watch(&gone, 6);
    assert_eq!(gone.take(), Some(6), "the outcome is there");
}

#[test]
fn a_watch_that_is_empty_again_is_gone() {
    let cell = cell();
    let arrivals = Arc::default();
    cell.watch(&arrivals, 1);
    cell.unwatch(&arrivals);
    assert!(cell.lock().watch.is_none());
    cell.notify(Waker::noop());
    cell.watch(&arrivals, 1);
    cell.unwatch(&arrivals);
    assert!(cell.lock().watch.is_some(), "somebody else still waits");
}

#[test]
fn large_memory_outlives_the_completion() {
    let arena = brigade_sys::arena::ArgumentArena::create("test", 1 << 20).unwrap();
    let large = vec![7_u8; 128 << 10];
    let arguments = [Argument::of(large.clone(), Some(&arena)), Argument::Inline(large.clone())];
    for argument in arguments {
        let nothing = |(): ()| ();
        let callee = Callee::of(function_of::<_, (), ()>(nothing)).unwrap();
        let cell = TaskCell::new(TaskId::new(1), callee, argument, None, None);
        let Completed { argument, is_large, .. } = cell.complete(Ok(value(1)));
        assert_eq!(argument.expect("freed by whoever completes it").into_vec(), large);
        assert!(!is_large);
    }
    let cell = cell();
    let completed = cell.complete(Ok(Value::Inline(large)));
    assert!(completed.is_large && completed.argument.is_none());
}
