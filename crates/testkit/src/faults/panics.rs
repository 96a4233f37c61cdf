//! Tasks that panic in every possible way.

use std::panic::panic_any;
use std::thread;

/// Panics with a literal.
///
/// # Panics
/// Always.
pub fn panics_with_str((): ()) {
    panic!("a literal");
}

/// Panics with a formatted message.
///
/// # Panics
/// Always.
#[expect(clippy::needless_pass_by_value, reason = "a task function takes its argument by value")]
pub fn panics_with_string(what: String) {
    panic!("made for the occasion: {what}");
}

/// Panics with a payload that is not text.
///
/// # Panics
/// Always.
pub fn panics_with_an_object((): ()) {
    panic_any(vec![1_u8, 2, 3]);
}

/// Panics with a payload that panics again when it is dropped.
///
/// # Panics
/// Always.
pub fn panics_with_a_bomb((): ()) {
    panic_any(Bomb);
}

/// Starts a thread that panics, and survives that. Returns `true` if the thread panicked.
///
/// # Panics
/// Only its thread panics, not the task itself.
pub fn panics_in_a_thread((): ()) -> bool {
    thread::spawn(|| panic!("in a thread")).join().is_err()
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("the bomb went off");
    }
}
