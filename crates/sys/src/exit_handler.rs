//! A function that runs when this process ends by `exit`, or because `main` has returned.

use std::ffi::c_int;

unsafe extern "C" {
    // SAFETY: it takes any function without arguments, and every system's C library has it.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Has a function called at the end, on the thread that ends the process, while all others go on.
/// Copies of this process that `fork` makes call it, too. If it panics, the process aborts.
pub fn at_exit(function: extern "C" fn()) {
    // It fails only without memory.
    let _ = atexit(function);
}
