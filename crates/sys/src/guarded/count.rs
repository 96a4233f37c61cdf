//! The number of owners of a shared value: the strong count of an `Arc`.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};

/// An atomic word of the count or the lock: the standard library's, or loom's in the model beside
/// this file. Both get their orderings from the functions that use them, so loom checks the code
/// that runs.
pub(super) trait Word {
    fn load(&self, ordering: Ordering) -> u32;
    fn store(&self, value: u32, ordering: Ordering);
    fn swap(&self, value: u32, ordering: Ordering) -> u32;
    /// Replaces 0, and returns `false` if the word is something else.
    fn replace_zero(&self, value: u32, ordering: Ordering) -> bool;
    /// Adds, wraps around, and returns the value before.
    fn add(&self, value: u32, ordering: Ordering) -> u32;
    fn fence(ordering: Ordering);
    /// Sleeps while the word has this value; may return early for no reason.
    fn wait(&self, value: u32);
    /// Wakes one thread that sleeps.
    fn wake(&self);
}

/// The count of a value that has one owner.
pub(super) const ONE: u32 = 1;

/// The largest number of owners. Each thread that exceeds it aborts, so the counter wraps around
/// only if two billion threads do so at the same moment.
const MAX: u32 = u32::MAX / 2;

/// The number of owners.
pub(super) struct Count<'a, W>(pub(super) &'a W);

impl<W: Word> Count<'_, W> {
    /// Counts another owner. Returns `false` if there are too many.
    #[inline]
    #[must_use]
    pub(super) fn add(&self) -> bool {
        // Relaxed: the new owner is made from one that keeps the value alive.
        self.0.add(1, Relaxed) <= MAX
    }

    /// Removes an owner. Returns `true` if it was the last one, which has to drop the value.
    #[inline]
    #[must_use]
    pub(super) fn subtract(&self) -> bool {
        // Release: what this owner did with the value is before the drop.
        if self.0.add(1_u32.wrapping_neg(), Release) != ONE {
            return false;
        }
        // Acquire: the drop is after what the other owners did. Pairs with their release above.
        W::fence(Acquire);
        true
    }

    /// Returns `true` if there is one owner. Nobody but that one can then make others.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        // Acquire: what this owner does next is after what the former ones did.
        self.0.load(Acquire) == ONE
    }

    /// Counts another owner for one that nobody else can see meanwhile, if it is the only one; does
    /// nothing and returns `false` otherwise.
    #[inline]
    #[must_use]
    pub(super) fn add_to_exclusive(&self) -> bool {
        let is_one = self.is_one();
        if is_one {
            // No locked instruction: no other thread has an owner that could change the count.
            self.0.store(ONE + 1, Relaxed);
        }
        is_one
    }
}
