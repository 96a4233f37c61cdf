//! Waiting on a word of shared memory, and waking who waits there.

use std::sync::atomic::AtomicU32;

use rustix::thread::futex::{self, Flags};

/// Sleeps while the word has the value `expected`; may return early for no reason.
pub fn wait(word: &AtomicU32, expected: u32) {
    // Whatever ends it, the caller looks again.
    let _ = futex::wait(word, Flags::empty(), expected, None);
}

/// Wakes one process or thread that waits on the word.
pub fn wake(word: &AtomicU32) {
    // It fails only for an address that is none.
    let _ = futex::wake(word, Flags::empty(), 1);
}
