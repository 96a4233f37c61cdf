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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the threads that have copied each part.
    fn threads(parts: usize) -> Vec<Option<thread::ThreadId>> {
        let mut threads = vec![None; parts];
        spread(&mut threads, |part| {
            part.get_or_insert_with(|| thread::current().id());
        });
        threads
    }

    #[test]
    fn two_parts_are_copied_by_two_threads() {
        let here = Some(thread::current().id());
        assert_eq!((threads(0), threads(1)), (vec![], vec![here]));
        let two = threads(2);
        assert_eq!(two[0], here);
        assert!(two[1].is_some() && two[1] != here);
        assert_eq!(threads(3), [here; 3]);
    }

    #[test]
    fn small_copies_and_single_cores_take_one_thread() {
        assert_eq!([parts(LEAST - 1, 2), parts(LEAST, 1), parts(LEAST, 2)], [1, 1, 2]);
    }
}
