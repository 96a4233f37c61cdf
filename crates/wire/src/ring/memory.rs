//! The location of a ring in a segment.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
