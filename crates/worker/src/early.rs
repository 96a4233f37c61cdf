//! Acquires what libraries would acquire when it is first needed.
//!
//! An initializer may close files and system calls. Whatever this process opens, reads or maps
//! after that would fail, be slower, or end it. So all of that belongs before the initializer: here
//! if a library does it, or in the handshake ([`bootstrap`](crate::bootstrap)).

use std::hash::RandomState;

use brigade_sys::clock;

use crate::panic_capture;

/// Call it before the initializer.
pub(crate) fn acquire() {
    // Finds the vDSO, without which each reading of the clock is a system call.
    clock::now();
    // Each thread asks the system for keys once; this one runs the tasks.
    let _ = RandomState::new();
    panic_capture::keep_names();
}
