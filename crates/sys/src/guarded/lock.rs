//! A lock in one word: the mutex of three states of Drepper's "Futexes Are Tricky", behind a short
//! spin, as the standard library has it.
//!
//! A thread that finds it held marks it and sleeps; whoever frees a marked lock wakes one thread.
//! A thread that was woken, or has slept at all, takes the lock with the mark, because others may
//! still sleep. So at most one wake-up too many is made, and none is missed.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

use rustix::thread::futex::{self, Flags};

use super::count::Word;

pub(super) const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and threads may sleep.
const MARKED: u32 = 2;

/// Looks at a lock that is held before the thread sleeps. Locks are held for some ten nanoseconds,
/// and a sleep takes a thousand times as long.
const LOOKS: u32 = 100;

/// The lock.
pub(super) struct Lock<'a, W>(pub(super) &'a W);

impl<W: Word> Lock<'_, W> {
    #[inline]
    pub(super) fn lock(&self) {
        // Acquire: what the holders before did is before what this one does.
        if !self.0.replace_zero(HELD, Acquire) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        self.look();
        if self.0.replace_zero(HELD, Acquire) {
            return;
        }
        while self.0.swap(MARKED, Acquire) != FREE {
            self.0.wait(MARKED);
        }
    }

    /// Looks until the lock seems to be free, a few times.
    fn look(&self) {
        if cfg!(loom) {
            return;
        }
        for _ in 0..LOOKS {
            if self.0.load(Relaxed) != HELD {
                return;
            }
            std::hint::spin_loop();
        }
    }

    #[inline]
    pub(super) fn unlock(&self) {
        // Release: what this holder did is before what the next ones do.
        if self.0.swap(FREE, Release) == MARKED {
            self.0.wake();
        }
    }
}

impl Word for AtomicU32 {
    #[inline]
    fn load(&self, ordering: Ordering) -> u32 {
        self.load(ordering)
    }

    #[inline]
    fn store(&self, value: u32, ordering: Ordering) {
        self.store(value, ordering);
    }

    #[inline]
    fn swap(&self, value: u32, ordering: Ordering) -> u32 {
        self.swap(value, ordering)
    }

    #[inline]
    fn replace_zero(&self, value: u32, ordering: Ordering) -> bool {
        self.compare_exchange(0, value, ordering, Relaxed).is_ok()
    }

    #[inline]
    fn add(&self, value: u32, ordering: Ordering) -> u32 {
        self.fetch_add(value, ordering)
    }

    #[inline]
    fn fence(ordering: Ordering) {
        std::sync::atomic::fence(ordering);
    }

    #[cold]
    fn wait(&self, value: u32) {
        // Whatever ends it, the caller looks again.
        let _ = futex::wait(self, Flags::PRIVATE, value, None);
    }

    #[cold]
    fn wake(&self) {
        // It fails only for an invalid address.
        let _ = futex::wake(self, Flags::PRIVATE, 1);
    }
}
