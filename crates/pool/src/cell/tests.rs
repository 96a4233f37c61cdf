//! Tests of the memory of a task.

use super::*;
use crate::function_ref::FunctionRef;
use brigade_task::backend::Bytes;
use brigade_worker::function_of;

pub(crate) fn cell() -> TaskCell {
    let nothing = |(): ()| ();
    let function = FunctionRef::of(function_of::<_, (), ()>(nothing)).unwrap();
    TaskCell::new(Some(&Arc::default()), TaskId::new(1), function, Argument::EMPTY, None)
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
        let cell = TaskCell::new(Some(&Arc::default()), TaskId::new(1), function, argument, None);
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
    assert_eq!(8 + size_of::<Facts>() + size_of::<Content<Facts>>(), 56);
}

#[test]
fn content_takes_two_words() {
    assert_eq!(size_of::<Content<Facts>>(), 2 * size_of::<usize>());
}

#[test]
fn an_argument_in_any_form_is_returned_as_it_was() {
    for length in [0, 1, 14, 15, 4096] {
        let bytes: Vec<u8> = (0..=255).cycle().take(length).collect();
        for inline in [Bytes::copy(&bytes), bytes.clone().into()] {
            let argument = Argument::from(Content::from(Argument::Inline(inline)));
            assert_eq!(argument.as_bytes(), bytes);
        }
    }
}
