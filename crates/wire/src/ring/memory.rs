//! Where a ring lies in a segment, and what its words can do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use brigade_sys::segment::Segment;

/// The fewest data words: a quarter of them holds a piece with eight bytes or more.
const FEWEST: usize = 16;

/// A part of a shared segment.
#[derive(Debug, Clone)]
pub struct Region {
    segment: Arc<Segment>,
    offset: usize,
    length: usize,
}

impl Region {
    /// `length` words from `offset` on.
    ///
    /// # Panics
    /// When the segment ends before.
    pub fn new(segment: &Arc<Segment>, offset: usize, length: usize) -> Self {
        assert!(offset + length <= segment.words().len(), "a region beyond its segment");
        Self { segment: Arc::clone(segment), offset, length }
    }

    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.segment.words()[self.offset..self.offset + self.length]
    }

    /// The data words that fit, as a mask for positions.
    pub(super) fn capacity(&self) -> usize {
        let capacity = self.length - super::DATA;
        assert!(
            capacity.is_power_of_two() && capacity >= FEWEST,
            "a ring has a power of two of data words, and at least {FEWEST}"
        );
        capacity
    }
}

/// An atomic word of a ring: the standard library's, or that of the model in `loom.rs`. Both get their orderings from
/// the cursors of producer and consumer, so that what loom checks is what runs.
pub(super) trait Word {
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// A full fence.
    fn fence();
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
    fn fence() {
        fence(Ordering::SeqCst);
    }
}
