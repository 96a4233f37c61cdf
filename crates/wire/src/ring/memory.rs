//! The location of a ring in a segment, and the operations on its words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use brigade_sys::segment::{Segment, Words};

/// Minimum number of data words: a quarter of them holds a fragment with eight bytes or more.
const MIN: usize = 16;

/// A part of a shared segment.
#[derive(Debug, Clone)]
pub struct Region(Words);

impl Region {
    /// Creates the region of `length` words from `offset` on.
    ///
    /// # Panics
    /// If the segment is too short.
    pub fn new(segment: &Arc<Segment>, offset: usize, length: usize) -> Self {
        #[expect(clippy::expect_used, reason = "the layout of a segment is part of the program")]
        let words = Words::of(segment, offset, length).expect("a region within its segment");
        Self(words)
    }

    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.0
    }

    /// Returns the number of data words, which is a power of two, so that positions can be masked.
    pub(super) fn capacity(&self) -> usize {
        let capacity = self.0.len() - super::DATA;
        assert!(
            capacity.is_power_of_two() && capacity >= MIN,
            "a ring needs a power of two of data words, at least {MIN}"
        );
        capacity
    }
}

/// An atomic word of a ring: the standard library's, or that of the model in `loom.rs`. Both get
/// their orderings from the cursors of producer and consumer, so loom checks the code that runs.
pub(super) trait Word: Sized {
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// A fence with this ordering.
    fn fence(ordering: Ordering);
    /// Called before the consumer frees data words that it need not read. Only the model counts
    /// them.
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
    fn fence(ordering: Ordering) {
        fence(ordering);
    }
}
