//! Spreads a large copy over two threads.
//!
//! The kernel copies 10 GB/s on one thread, which is half of what the memory can do. The worker
//! waits for the copy, so its core is free for the second thread. Both take parts until there are
//! none: the second one begins later.

use std::sync::{Mutex, PoisonError};
use std::thread;

/// Copies of fewer bytes take one thread. Starting another takes 50 to 100 microseconds, and 4 MiB
/// took longer with it.
const MIN: usize = 8 << 20;

/// Bytes of a part: 50 microseconds.
const PART: usize = 512 << 10;

/// Returns the number of parts for a copy of this many bytes.
pub(in crate::drive) fn parts(length: usize, cores: usize) -> usize {
    if length >= MIN && cores > 1 { length.div_ceil(PART) } else { 1 }
}

/// Calls `copy` once with each part, on up to two threads.
pub(in crate::drive) fn spread<P: Send>(parts: &mut [P], copy: impl Fn(&mut P) + Sync) {
    let Some((first, rest)) = parts.split_first_mut() else { return };
    // Meanwhile the worker falls asleep. Else the system starts the second thread on this core.
    copy(first);
    if rest.is_empty() {
        return;
    }
    let rest = Mutex::new(rest.iter_mut());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let copy_rest = || {
        while let Some(part) = next() {
            copy(part);
        }
    };
    thread::scope(|scope| {
        let other = thread::Builder::new().name("brigade-copy".to_owned());
        // If there is no thread to be had, this one copies all parts.
        let _ = other.spawn_scoped(scope, copy_rest);
        copy_rest();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_part_is_copied_once() {
        for parts in 0..20 {
            let mut copies = vec![0; parts];
            spread(&mut copies, |count| *count += 1);
            assert_eq!(copies, vec![1; parts]);
        }
    }

    #[test]
    fn two_threads_share_the_parts_behind_the_first() {
        let here = thread::current().id();
        let mut threads = [None; 3];
        // Each of the last two parts ends when the other one has begun, or else much later.
        let (begun, more) = (Mutex::new(0), Condvar::new());
        spread(&mut threads, |thread| {
            *thread = Some(thread::current().id());
            let mut begun = begun.lock().unwrap();
            *begun += 1;
            more.notify_all();
            drop(more.wait_timeout_while(begun, Duration::from_secs(20), |begun| *begun == 2));
        });
        assert_eq!(threads[0], Some(here));
        assert_ne!(threads[1], threads[2]);
    }

    #[test]
    fn small_copies_and_single_cores_take_one_thread() {
        assert_eq!([parts(MIN - 1, 2), parts(MIN, 1), parts(MIN, 2)], [1, 1, 16]);
    }
}
