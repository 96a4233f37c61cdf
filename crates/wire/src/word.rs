//! An atomic word of memory that host and worker share.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// An atomic word: the standard library's, or that of a model. Both get their orderings from the
/// code that uses them, so loom checks the code that runs.
pub(crate) trait Word: Sized {
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// On failure returns the actual value.
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64>;
    /// A fence with this ordering.
    fn fence(ordering: Ordering);
    /// Called before the consumer of a ring frees data words that it need not read. Only the model
    /// counts them.
    #[inline]
    fn pass_over(_data: &[Self], _from: u64, _to: u64) {}
}

impl Word for AtomicU64 {
    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    #[inline]
    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    #[inline]
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64> {
        self.compare_exchange(expected, value, won, lost).map(drop)
    }

    #[inline]
    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}
