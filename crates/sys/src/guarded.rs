//! A shared value with a part behind a lock, which takes eight bytes more than its parts: `Arc` and
//! `Mutex` in one.
//!
//! An `Arc` with a `Mutex` takes 24: two counters of eight bytes each, of which nobody here uses
//! the second, and the mutex's mark of poison, which the alignment of its content makes four bytes.
//! That counts where there are millions of values.

mod count;
mod lock;
#[cfg(all(test, loom))]
mod loom;

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::process::abort;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use count::Count;
use lock::Lock;

/// An owner of a shared value, of which the part of type `S` is behind a lock and the rest is not.
///
/// The value is dropped with its last owner. As in [`sync`](crate::sync), a panic under the lock
/// has no effect on it.
///
/// ```
/// use brigade_sys::guarded::Guarded;
///
/// let owner = Guarded::new("name", vec![1]);
/// let other = owner.clone();
/// Guarded::lock(&other).push(2);
/// assert_eq!((*owner, Guarded::lock(&owner).len()), ("name", 2));
/// ```
pub struct Guarded<T, S> {
    inner: NonNull<Inner<T, S>>,
    /// Dropping an owner may drop the value.
    owned: PhantomData<Inner<T, S>>,
}

struct Inner<T, S> {
    count: AtomicU32,
    lock: AtomicU32,
    open: T,
    locked: UnsafeCell<S>,
}

// SAFETY: an owner on another thread can reach `T` at the same time as this one, and both of them
// `S` in turn. The last owner drops both on its thread.
unsafe impl<T: Send + Sync, S: Send> Send for Guarded<T, S> {}
// SAFETY: a shared owner can be cloned, so it allows no more than an owner.
unsafe impl<T: Send + Sync, S: Send> Sync for Guarded<T, S> {}

impl<T, S> Guarded<T, S> {
    /// Creates a value with one owner.
    #[inline]
    pub fn new(open: T, locked: S) -> Self {
        let (count, lock) = (AtomicU32::new(count::ONE), AtomicU32::new(lock::FREE));
        let locked = UnsafeCell::new(locked);
        // Not `Box::new`, for which the parts would first be put together elsewhere.
        let inner = Box::write(Box::new_uninit(), Inner { count, lock, open, locked });
        Self { inner: NonNull::from(Box::leak(inner)), owned: PhantomData }
    }

    #[inline]
    fn inner(&self) -> &Inner<T, S> {
        // SAFETY: the value lives until its last owner is dropped, so at least as long as this one,
        // and nobody refers to it mutably but through the cell.
        unsafe { self.inner.as_ref() }
    }

    /// Blocks until the lock is free and locks it. A thread that locks it twice blocks forever.
    #[inline]
    pub fn lock(this: &Self) -> Guard<'_, T, S> {
        let inner = this.inner();
        Lock(&inner.lock).lock();
        Guard { inner }
    }

    /// Returns `true` if there is no other owner.
    #[inline]
    pub fn is_only_owner(this: &Self) -> bool {
        Count(&this.inner().count).is_one()
    }

    /// Returns access to the part behind the lock without locking it, if there is no other owner.
    #[inline]
    pub fn get_mut(this: &mut Self) -> Option<&mut S> {
        if !Self::is_only_owner(this) {
            return None;
        }
        // SAFETY: this is the only owner, what former ones did was before, and the new ones that
        // are made from it wait for the end of this borrow. A guard would borrow an owner.
        Some(unsafe { &mut *this.inner().locked.get() })
    }

    /// Returns another owner, like `clone`, for less if there is only this one so far.
    #[inline]
    pub fn share(this: &mut Self) -> Self {
        if !Count(&this.inner().count).add_to_exclusive() {
            return this.clone();
        }
        Self { inner: this.inner, owned: PhantomData }
    }
}

impl<T, S> Clone for Guarded<T, S> {
    #[inline]
    fn clone(&self) -> Self {
        if !Count(&self.inner().count).add() {
            abort();
        }
        Self { inner: self.inner, owned: PhantomData }
    }
}

impl<T, S> Drop for Guarded<T, S> {
    #[inline]
    fn drop(&mut self) {
        let count = Count(&self.inner().count);
        if count.is_one() || count.subtract() {
            // SAFETY: the value was leaked from a box, and this is its last owner: nobody else can
            // reach it any more, and what the others did with it was before, see `Count`.
            drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
        }
    }
}

impl<T, S> Deref for Guarded<T, S> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().open
    }
}

impl<T: fmt::Debug, S> fmt::Debug for Guarded<T, S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner().open.fmt(out)
    }
}

/// Access to the part behind the lock, which is unlocked with this.
#[must_use = "the lock is free again once the guard is dropped"]
pub struct Guard<'a, T, S> {
    inner: &'a Inner<T, S>,
}

impl<T, S> Deref for Guard<'_, T, S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        // SAFETY: the lock is held, so only this guard gives access, and none that changes it while
        // it is borrowed here.
        unsafe { &*self.inner.locked.get() }
    }
}

impl<T, S> DerefMut for Guard<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        // SAFETY: the lock is held, so only this guard gives access, and it is borrowed mutably.
        unsafe { &mut *self.inner.locked.get() }
    }
}

impl<T, S> Drop for Guard<'_, T, S> {
    #[inline]
    fn drop(&mut self) {
        Lock(&self.inner.lock).unlock();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::thread;

    use super::*;

    #[test]
    fn a_value_takes_eight_bytes_more_than_its_parts() {
        assert_eq!(size_of::<Inner<[u64; 4], [u64; 2]>>(), 8 + 32 + 16);
        assert_eq!(size_of::<Option<Guarded<u64, u64>>>(), 8);
    }

    #[test]
    fn the_last_owner_drops_the_value_once() {
        let parts = (Arc::new(()), Arc::new(()));
        let owner = Guarded::new(Arc::clone(&parts.0), Arc::clone(&parts.1));
        assert!(Guarded::is_only_owner(&owner));
        let others: Vec<_> = (0..4).map(|_| owner.clone()).collect();
        assert!(!Guarded::is_only_owner(&owner));
        let threads: Vec<_> =
            others.into_iter().map(|it| thread::spawn(move || drop(it))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let counts = || (Arc::strong_count(&parts.0), Arc::strong_count(&parts.1));
        assert_eq!(counts(), (2, 2));
        drop(owner);
        assert_eq!(counts(), (1, 1));
    }

    #[test]
    fn only_one_owner_gets_access_without_the_lock() {
        let mut owner = Guarded::new((), 1);
        *Guarded::get_mut(&mut owner).unwrap() += 1;
        let mut others = [Guarded::share(&mut owner), Guarded::share(&mut owner)];
        assert!(Guarded::get_mut(&mut owner).is_none());
        assert!(others.iter_mut().all(|other| Guarded::get_mut(other).is_none()));
        thread::spawn(move || *Guarded::lock(&others[1]) += 1).join().unwrap();
        assert_eq!(Guarded::get_mut(&mut owner), Some(&mut 3));
    }

    #[test]
    fn threads_change_the_locked_part_in_turn() {
        const EACH: u64 = 20_000;
        let owner = Guarded::new((), 0);
        let add =
            |owner: Guarded<(), u64>| move || (0..EACH).for_each(|_| *Guarded::lock(&owner) += 1);
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(add(owner.clone()))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*Guarded::lock(&owner), 4 * EACH);
    }

    #[test]
    fn a_panic_under_the_lock_frees_it() {
        let owner = Guarded::new((), 1);
        let panics = AssertUnwindSafe(|| {
            *Guarded::lock(&owner) = 2;
            let _held = Guarded::lock(&owner);
            panic!("under the lock");
        });
        assert!(catch_unwind(panics).is_err());
        assert_eq!(*Guarded::lock(&owner), 2);
    }
}
