//! Spreads a large copy over two threads.
//!
//! The kernel copies 10 GB/s on one thread, which is half of what the memory can do. The worker
//! waits for the copy, so its core is free for the second thread.

use std::thread;

/// Copies of fewer bytes take one thread. Starting another takes 50 to 100 microseconds, and 4 MiB
/// took longer with it.
const LEAST: usize = 8 << 20;

/// Returns the number of parts for a copy of this many bytes.
pub(super) fn parts(length: usize, cores: usize) -> usize {
    if length >= LEAST && cores > 1 { 2 } else { 1 }
}

/// Calls `copy` with each part; with the second of two on another thread. It may be called twice
/// with the same part.
pub(super) fn spread<P: Send>(parts: &mut [P], copy: impl Fn(&mut P) + Sync) {
    if let [first, second] = parts {
        thread::scope(|scope| {
            let other = thread::Builder::new().name("brigade-copy".to_owned());
            // If there is no thread to be had, the part is copied below.
            let _ = other.spawn_scoped(scope, || copy(second));
            copy(first);
        });
    }
    parts.iter_mut().for_each(copy);
}
