//! Tasks that take time or memory, or carry much.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::wait::pause;

/// Sleeps so many milliseconds and returns the number.
pub fn sleeps(milliseconds: u64) -> u64 {
    pause(Duration::from_millis(milliseconds));
    milliseconds
}

/// Uses a core for so many microseconds and returns the number.
pub fn spins(microseconds: u64) -> u64 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(microseconds) {
        std::hint::spin_loop();
    }
    microseconds
}

/// Sleeps until its process is killed; ten minutes if nobody does.
pub fn hangs((): ()) {
    pause(Duration::from_secs(600));
}

/// Uses so many bytes of memory for a moment; returns how many.
pub fn allocates(bytes: usize) -> usize {
    black_box(vec![1_u8; bytes]).len()
}

/// Returns so many bytes, each of them the low byte of its place.
pub fn returns_bytes(bytes: usize) -> Vec<u8> {
    (0..=u8::MAX).cycle().take(bytes).collect()
}

/// Returns its argument.
pub fn echoes(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}
