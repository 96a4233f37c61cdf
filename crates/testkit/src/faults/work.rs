//! Tasks that take time or memory, or carry large payloads.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::{pause, repeated};

/// Sleeps for `milliseconds` and returns that number.
pub fn sleeps(milliseconds: u64) -> u64 {
    pause(Duration::from_millis(milliseconds));
    milliseconds
}

/// Keeps a core busy for `microseconds` and returns that number.
pub fn spins(microseconds: u64) -> u64 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(microseconds) {
        std::hint::spin_loop();
    }
    microseconds
}

/// Sleeps until its process is killed, for ten minutes at most.
pub fn hangs((): ()) {
    pause(Duration::from_secs(600));
}

/// Allocates `bytes` for a moment and returns that number.
pub fn allocates(bytes: usize) -> usize {
    black_box(vec![1_u8; bytes]).len()
}

/// Returns `bytes` bytes, each the low byte of its index.
pub fn returns_bytes(bytes: usize) -> Vec<u8> {
    let period: Vec<u8> = (0..=u8::MAX).collect();
    repeated(&period, bytes)
}

/// Returns its argument.
pub fn echoes(bytes: Vec<u8>) -> Vec<u8> {
    bytes
}
