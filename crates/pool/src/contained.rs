//! Code of users on threads that have more to do: a panic of it goes no further.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs it; its message if it panics.
///
/// What a panicking closure leaves behind is the closure's own: it is consumed, and nothing of ours is lent to it.
pub(crate) fn contain(run: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|payload| {
        let message = message_of(&*payload);
        // To drop what was thrown is to run code of users as well; what that throws is not tried again.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(again);
        }
        message
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "not a text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::panic_any;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }

    #[test]
    fn what_a_panic_says_is_told() {
        assert_eq!(contain(|| {}), Ok(()));
        assert_eq!(contain(|| panic!("a text")), Err("a text".to_owned()));
        assert_eq!(contain(|| panic!("number {}", 5)), Err("number 5".to_owned()));
    }

    #[test]
    fn what_was_thrown_may_panic_when_it_is_dropped() {
        assert_eq!(contain(|| panic_any(Bomb)), Err("not a text".to_owned()));
    }
}
