//! A separate value for each process that has the memory: the original, and each copy that `fork`
//! has made of it.
//!
//! # Protocol
//! The values form a list, the newest first: a Treiber stack from which nothing is popped. A thread
//! that finds no value of its process in front adds one with a single compare-and-swap; the loser
//! of a race uses the winner's value. Nothing is removed before the whole list is dropped, so a
//! reference stays valid. No lock is taken, so a copy never waits for a thread that it does not
//! have.

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Origin;

/// Gives each process its own value, for example a lock: one that another thread holds when the
/// process forks stays locked in the copy forever.
///
/// ```
/// use brigade_sys::fork::PerProcess;
/// use std::sync::Mutex;
///
/// static COUNT: PerProcess<Mutex<u32>> = PerProcess::new();
/// *COUNT.get_or_make(|_| Mutex::new(0)).lock().unwrap() += 1;
/// ```
pub struct PerProcess<T> {
    newest: AtomicPtr<Node<T>>,
    owns: PhantomData<T>,
}

struct Node<T> {
    origin: Origin,
    value: T,
    older: *mut Node<T>,
}

impl<T> PerProcess<T> {
    /// Creates an empty list, without a value for any process.
    pub const fn new() -> Self {
        Self { newest: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }
}

impl<T: Send + Sync> PerProcess<T> {
    /// Returns this process's value, which is created on first use. `make` gets the value
    /// of the nearest ancestor that has one, in the state in which it was copied; it must not fork,
    /// and its value is dropped if another thread is faster.
    pub fn get_or_make(&self, make: impl FnOnce(Option<&T>) -> T) -> &T {
        let newest = self.newest.load(Ordering::Acquire);
        // SAFETY: the pointer is null or points to a node, which is shared from the moment it was
        // published, not changed, and freed when `self` is dropped.
        let before = unsafe { newest.as_ref() };
        if let Some(node) = before.filter(|node| node.origin.is_here()) {
            return &node.value;
        }
        let value = make(before.map(|node| &node.value));
        let new = Box::into_raw(Box::new(Node { origin: Origin::here(), value, older: newest }));
        let first = self.newest.compare_exchange(newest, new, Ordering::AcqRel, Ordering::Acquire);
        let node = match first {
            Ok(_) => new,
            Err(first) => {
                // SAFETY: created above and not published.
                drop(unsafe { Box::from_raw(new) });
                first
            }
        };
        // SAFETY: see above; it is not null. Another thread of this process has stored it: no other
        // process can.
        unsafe { &(*node).value }
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}

crate::debug_fields! {
    impl<T> PerProcess<T> {}
}

impl<T> Drop for PerProcess<T> {
    fn drop(&mut self) {
        let mut next = *self.newest.get_mut();
        while !next.is_null() {
            // SAFETY: each node came from a box, is in the list once, and nobody has a reference
            // any more.
            let node = unsafe { Box::from_raw(next) };
            next = node.older;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier, Mutex};
    use std::thread;

    use super::*;
    use crate::fork::tests::in_a_copy;

    #[test]
    fn threads_of_a_process_share_one_value_dropped_once() {
        let (values, count) = (PerProcess::new(), Arc::new(()));
        let start = Barrier::new(8);
        let make = || {
            start.wait();
            ptr::from_ref(values.get_or_make(|_| Arc::clone(&count))).addr()
        };
        let addresses: Vec<usize> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
            threads.into_iter().map(|thread| thread.join().expect("an address")).collect()
        });
        assert!(addresses.iter().all(|address| *address == addresses[0]));
        assert_eq!(Arc::strong_count(&count), 2);
        drop(values);
        assert_eq!(Arc::strong_count(&count), 1);
    }

    #[test]
    fn a_copy_has_its_own_lock_and_sees_the_parents_lock() {
        let locks = PerProcess::new();
        let held = locks.get_or_make(|_| Mutex::new(1)).lock().expect("no panic before");
        assert!(in_a_copy(|| {
            let make = |parents: Option<&Mutex<i32>>| {
                Mutex::new(if parents.is_some_and(|lock| lock.try_lock().is_err()) { 2 } else { 3 })
            };
            let own = locks.get_or_make(make);
            own.try_lock().is_ok_and(|number| *number == 2)
                && ptr::eq(own, locks.get_or_make(|_| Mutex::new(4)))
        }));
        drop(held);
    }
}
