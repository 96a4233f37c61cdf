//! Waits on a word of shared memory, and wakes its waiters.
//!
//! Words have 64 bits, for this program and all that share them; the kernel looks at the lower 32.
//! So no two accesses of programs to the same memory differ in size.

use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

/// Sleeps while the word's lower half equals that of `expected`; may return early for no reason.
pub fn wait(word: &AtomicU64, expected: u64) {
    wait_for(word, expected, None);
}

/// Like [`wait`], but sleeps at most for `timeout`.
pub fn wait_for(word: &AtomicU64, expected: u64, timeout: Option<Duration>) {
    #[expect(clippy::cast_possible_truncation, reason = "the kernel looks at the lower half")]
    let expected = expected as u32;
    // A timeout beyond the range of the clock counts as no timeout.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    // Whatever ends it, the caller looks again.
    let _ = futex::wait(lower_half(word), Flags::empty(), expected, timeout.as_ref());
}

/// Wakes one process or thread that waits on the word.
pub fn wake(word: &AtomicU64) {
    // It fails only for an invalid address.
    let _ = futex::wake(lower_half(word), Flags::empty(), 1);
}

/// Wakes all processes and threads that wait on the word.
pub fn wake_all(word: &AtomicU64) {
    // The number is signed in the kernel. It fails only for an invalid address.
    let _ = futex::wake(lower_half(word), Flags::empty(), i32::MAX.unsigned_abs());
}

/// For the kernel only: no code here reads or writes through it.
fn lower_half(word: &AtomicU64) -> &AtomicU32 {
    let halves = std::ptr::from_ref(word).cast::<AtomicU32>();
    let lower = if cfg!(target_endian = "little") { halves } else { halves.wrapping_add(1) };
    // SAFETY: it lies within the word, lives as long, and needs less alignment. Both may change
    // through shared references.
    unsafe { &*lower }
}
