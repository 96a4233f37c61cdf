//! Where a ring lies in a segment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use brigade_sys::segment::Segment;

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

    pub(super) fn futex(&self, index: usize) -> &AtomicU32 {
        self.segment.futex(self.offset + index)
    }

    /// The data words that fit, as a mask for positions.
    pub(super) fn capacity(&self) -> usize {
        let capacity = self.length - super::DATA;
        assert!(capacity.is_power_of_two(), "a ring has a power of two of data words");
        capacity
    }
}
