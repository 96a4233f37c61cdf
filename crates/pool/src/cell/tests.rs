//! Tests of the memory of a task.

use super::*;
use crate::chunk::RetriedFor;
use crate::function_ref::FunctionRef;
use brigade_worker::function_of;

pub(crate) fn cell() -> TaskCell {
    let nothing = |(): ()| ();
    let function = FunctionRef::of(function_of::<_, (), ()>(nothing)).unwrap();
    TaskCell::new(
        &Arc::default(),
        TaskId::new(1),
        function,
        Argument::EMPTY,
        None,
        None,
        RetriedFor::default(),
    )
}

pub(crate) fn value(byte: u8) -> Value {
    Value::Inline(vec![byte].into())
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
        let cell = TaskCell::new(
            &Arc::default(),
            TaskId::new(1),
            function,
            argument,
            None,
            None,
            RetriedFor::default(),
        );
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
