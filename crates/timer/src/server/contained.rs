//! Code of users that runs on the server's thread: reapers, hooks, observers, and the subscriber of `tracing`. A panic in it
//! is no reason for the server to end.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls it; a panic is an error with its text.
pub(super) fn contained<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = text_of(&*panic).to_owned();
        // It is the user's as well, and its drop may panic. What that throws is not dropped any more.
        if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            mem::forget(second);
        }
        text
    })
}

/// Writes to the log, whose subscriber is code of users.
pub(super) fn log(write: impl FnOnce()) {
    // There is nobody left who could be told.
    let _ = contained(write);
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic")
}
