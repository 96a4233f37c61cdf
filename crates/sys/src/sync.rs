//! Locks that a panic does not make unusable.
//!
//! The locks of the standard library are *poisoned* when a thread panics while it holds one, and
//! every later `lock` returns an error. [`Mutex`] ignores that, for two reasons:
//!
//! - Poison protects data that a panic has left half-changed. In Brigade every critical section
//!   keeps its invariants when it unwinds: it changes the data in steps that do not panic, and runs
//!   no user code whose panic it does not catch. Where a section is too large for that to be
//!   obvious, as in the pool's core, the loop of the thread catches the panic and fails the pool.
//! - Passing the panic on would do more harm. Locks are taken in destructors, where a second panic
//!   aborts the process, and by threads that kill processes and return cores. They must go on
//!   whatever has happened to another thread.

use std::fmt;
use std::sync::{self, PoisonError, TryLockError, WaitTimeoutResult};
use std::time::Duration;

pub use std::sync::MutexGuard;

/// A [`std::sync::Mutex`] that ignores poison; see the [module](self) for the reasons.
///
/// ```
/// use brigade_sys::sync::Mutex;
///
/// let numbers = Mutex::new(vec![1]);
/// numbers.lock().push(2);
/// assert_eq!(*numbers.lock(), [1, 2]);
/// ```
#[derive(Default)]
pub struct Mutex<T: ?Sized>(sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(sync::Mutex::new(value))
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Blocks until the mutex is free and locks it. A thread that locks it twice blocks forever, or
    /// panics.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the mutex, or returns `None` if it is locked already.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns the value without locking: nobody else has access to it.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A [`std::sync::Condvar`] for a [`Mutex`] of this module.
///
/// As with every condition variable, a wait may end without a notification.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// Creates a condition variable on which nobody waits.
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Unlocks the mutex, blocks until there is a notification, and locks it again.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Like [`wait`](Self::wait), but blocks at most for `limit`.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.0.wait_timeout(guard, limit).unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks while the condition returns `true`, but at most for `limit`.
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.0.wait_timeout_while(guard, limit, condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes one waiting thread, if there is one.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    /// Returns a mutex whose holder has panicked.
    fn poisoned() -> Arc<Mutex<u32>> {
        let mutex = Arc::new(Mutex::new(1));
        let panics = Arc::clone(&mutex);
        let holder = thread::spawn(move || {
            let mut guard = panics.lock();
            *guard = 2;
            panic!("while it holds the lock");
        });
        holder.join().expect_err("it panics");
        assert!(mutex.0.is_poisoned());
        mutex
    }

    #[test]
    fn a_panic_under_the_lock_does_not_disable_it() {
        let mut mutex = poisoned();
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.try_lock().as_deref(), Some(&2));
        let held = mutex.lock();
        assert!(mutex.try_lock().is_none());
        drop(held);
        assert_eq!(Arc::get_mut(&mut mutex).map(Mutex::get_mut), Some(&mut 2));
    }

    #[test]
    fn waits_go_on_after_a_panic_under_the_lock() {
        let (mutex, changed) = (poisoned(), Arc::new(Condvar::new()));
        let (other, notify) = (Arc::clone(&mutex), Arc::clone(&changed));
        let mut guard = mutex.lock();
        let limit = Duration::from_millis(1);
        let waited = changed.wait_timeout(guard, limit);
        guard = changed.wait_timeout_while(waited.0, limit, |value| *value == 3).0;
        let notifier = thread::spawn(move || {
            *other.lock() = 3;
            notify.notify_all();
        });
        while *guard != 3 {
            guard = changed.wait(guard);
        }
        drop(guard);
        notifier.join().expect("it does not panic");
    }
}
