//! Tracks the free parts of an arena, and which of these are warm. It works on numbers only and
//! touches no memory.
//!
//! The allocator takes the best fit, and of several the one with the lowest address, and joins free
//! neighbors at once (see Wilson and others 1995). Ordered trees by address and by length find
//! them.
//!
//! A range of bytes is in one of four states:
//!
//! ```text
//! cold  --take-->  taken  --give_back-->  warm  --take, take_warm-->  taken
//!                                         warm  --give_back-->  leaving  --give_back_cold-->  cold
//! ```
//! There are never more than `kept` warm bytes. The bytes beyond that, at the highest addresses,
//! are *leaving*: their memory is about to go back to the system, and until then nobody can take
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The free parts of an arena; see the [module](self).
#[derive(Debug)]
pub(super) struct Ranges {
    /// All bytes that can be taken.
    free: RangeSet,
    /// The warm part of `free`.
    warm: RangeSet,
    kept: usize,
}

impl Ranges {
    /// Creates `length` free and cold bytes.
    pub(super) fn new(length: usize, kept: usize) -> Self {
        let (mut free, warm) = (RangeSet::default(), RangeSet::default());
        free.insert(0..length);
        Self { free, warm, kept }
    }

    /// Takes warm memory only: the first of the smallest ranges that are large enough.
    pub(super) fn take_warm(&mut self, length: usize) -> Option<usize> {
        let start = self.warm.best_fit(length)?;
        self.remove(start..start + length);
        Some(start)
    }

    /// Takes memory that may be warm, cold, or warm in parts.
    pub(super) fn take(&mut self, length: usize) -> Option<usize> {
        let start = self.free.best_fit(length)?;
        self.remove(start..start + length);
        Some(start)
    }

    /// Returns the warm ranges, in their order.
    pub(super) fn warm(&self) -> impl Iterator<Item = Range<usize>> {
        self.warm.by_start.iter().map(|(&start, &end)| start..end)
    }

    /// Takes the parts of a range that are free.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.free.remove(&range);
        self.warm.remove(&range);
    }

    /// Gives back a taken range, which is warm. Returns the ranges that have to leave: give them
    /// back cold when their memory is gone.
    #[must_use]
    pub(super) fn give_back(&mut self, range: Range<usize>) -> Vec<Range<usize>> {
        self.free.insert(range.clone());
        self.warm.insert(range);
        let mut leaving = Vec::new();
        while let Some(excess) = self.warm.total.checked_sub(self.kept + 1) {
            let Some(mut last) = self.warm.last() else { break };
            last.start = last.start.max(last.end.saturating_sub(excess + 1));
            self.remove(last.clone());
            leaving.push(last);
        }
        leaving
    }

    /// Gives back a range that was taken or leaving, without its memory.
    pub(super) fn give_back_cold(&mut self, range: Range<usize>) {
        self.free.insert(range);
    }
}

/// Ranges that neither overlap nor touch, by start and by length.
#[derive(Debug, Default)]
struct RangeSet {
    /// Start and end.
    by_start: BTreeMap<usize, usize>,
    /// Length and start.
    by_length: BTreeSet<(usize, usize)>,
    /// The sum of all lengths.
    total: usize,
}

impl RangeSet {
    /// Adds a range that does not overlap the set, and joins it with its neighbors.
    fn insert(&mut self, range: Range<usize>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&before, &its_end)) = self.by_start.range(..=start).next_back() {
            debug_assert!(its_end <= start, "the range is already in the set");
            if its_end == start {
                self.cut(before, its_end);
                start = before;
            }
        }
        if let Some((&after, &its_end)) = self.by_start.range(start..).next() {
            debug_assert!(after >= end, "the range is already in the set");
            if after == end {
                self.cut(after, its_end);
                end = its_end;
            }
        }
        self.add(start, end);
    }

    /// Removes the parts of a range that are in the set.
    fn remove(&mut self, range: &Range<usize>) {
        while let Some((&start, &end)) = self.by_start.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            self.cut(start, end);
            if end > range.end {
                self.add(range.end, end);
            }
            if start < range.start {
                self.add(start, range.start);
            }
        }
    }

    fn best_fit(&self, length: usize) -> Option<usize> {
        self.by_length.range((length, 0)..).next().map(|&(_, start)| start)
    }

    fn last(&self) -> Option<Range<usize>> {
        self.by_start.last_key_value().map(|(&start, &end)| start..end)
    }

    fn add(&mut self, start: usize, end: usize) {
        self.by_start.insert(start, end);
        self.by_length.insert((end - start, start));
        self.total += end - start;
    }

    fn cut(&mut self, start: usize, end: usize) {
        self.by_start.remove(&start);
        self.by_length.remove(&(end - start, start));
        self.total -= end - start;
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
