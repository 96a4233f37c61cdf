//! Waiting on a word of shared memory, and waking who waits there.

use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// Sleeps while the word has the value `expected`; may return early for no reason.
pub fn wait(word: &AtomicU32, expected: u32) {
    match futex::wait(word, Flags::empty(), expected, None) {
        // The caller looks again in any case.
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) | Err(_) => {}
    }
}

/// Wakes one process or thread that waits on the word.
pub fn wake(word: &AtomicU32) {
    // It fails only for an address that is none.
    let _ = futex::wake(word, Flags::empty(), 1);
}
