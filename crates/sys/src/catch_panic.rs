//! Runs code that may panic on threads that must go on.
//!
//! The payload of a panic belongs to the code that panicked, and dropping it may panic again. The
//! functions of this module contain that too.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `call`. A panic becomes an error with its message.
///
/// The data that `call` borrows must be consistent after a panic: the compiler does not check it.
///
/// # Errors
/// Returns the message of the panic; see [`panic_text`].
///
/// ```
/// use brigade_sys::catch_panic::catch_panic;
///
/// assert_eq!(catch_panic(|| 1), Ok(1));
/// assert_eq!(catch_panic(|| panic!("number {}", 5)), Err::<(), _>("number 5".to_owned()));
/// ```
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|payload| {
        let text = panic_text(&*payload).to_owned();
        drop_payload(payload);
        text
    })
}

/// Returns the message of a panic's payload. It is the same text for all payloads that are not
/// strings.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("non-string payload")
}

/// Drops the payload of a panic. If that panics, the second payload is leaked.
pub fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Self);
        }
    }

    #[test]
    fn the_message_of_a_panic_is_returned() {
        assert_eq!(catch_panic(|| 1), Ok(1));
        assert_eq!(catch_panic(|| panic!("a text")), Err::<(), _>("a text".to_owned()));
        assert_eq!(catch_panic(|| panic!("number {}", 5)), Err::<(), _>("number 5".to_owned()));
    }

    #[test]
    fn a_payload_that_panics_on_drop_is_caught() {
        assert_eq!(catch_panic(|| panic_any(Bomb)), Err::<(), _>("non-string payload".to_owned()));
    }
}
