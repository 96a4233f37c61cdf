//! The number of items of a chunk: as many as make a few milliseconds of work. Pure.

use std::time::Duration;

/// The work in a chunk. Enough that the cost of a message, about 50 µs, does not count.
const TARGET: Duration = Duration::from_millis(4);

/// Most items of a chunk.
const MOST: u32 = 4096;

/// Growth from one chunk that is done to the next.
const GROWTH: u32 = 4;

/// The weight of a longer run time than expected is one part in 16, because it may include a time
/// in the queue of the node.
const CAUTION: u32 = 16;

/// Chunks in flight before the first result, so that long tasks are spread over all nodes.
const FIRST_CHUNKS: usize = 16;

/// Chunks in flight at most, for thousands of workers.
const MOST_CHUNKS: usize = 1024;

/// Learns the size of chunks from the run times of those that are done.
#[derive(Debug, Default)]
pub(super) struct Sizing {
    fixed: Option<u32>,
    /// Run time of an item; `None` before the first result.
    per_item: Option<Duration>,
    /// The size of the largest chunk that is done.
    largest: u32,
}

impl Sizing {
    /// Sets the size of all chunks.
    pub(super) fn fix(&mut self, items: u32) {
        self.fixed = Some(items.clamp(1, MOST));
    }

    pub(super) fn fixed(&self) -> Option<u32> {
        self.fixed
    }

    /// Returns the number of items of the next chunk.
    pub(super) fn items(&self) -> u32 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let Some(per_item) = self.per_item else { return 1 };
        let wanted = TARGET.as_nanos() / per_item.as_nanos().max(1);
        let wanted = u32::try_from(wanted).unwrap_or(MOST);
        wanted.min(self.largest.saturating_mul(GROWTH)).clamp(1, MOST)
    }

    /// Returns the number of chunks that may be in flight.
    pub(super) fn chunks(&self) -> usize {
        if self.fixed.is_none() && self.per_item.is_none() { FIRST_CHUNKS } else { MOST_CHUNKS }
    }

    /// Learns from a chunk that is done.
    pub(super) fn learn(&mut self, items: u32, run_time: Duration) {
        self.largest = self.largest.max(items);
        let sample = run_time / items.max(1);
        self.per_item = Some(match self.per_item {
            Some(known) if sample > known => known + sample.saturating_sub(known) / CAUTION,
            _ => sample,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_until_they_are_worth_their_message() {
        let mut sizing = Sizing::default();
        assert_eq!((sizing.items(), sizing.chunks()), (1, FIRST_CHUNKS));
        for expected in [4, 16, 64, 256, 1024, 4000, 4000] {
            let items = sizing.items();
            sizing.learn(items, Duration::from_micros(1) * items);
            assert_eq!(sizing.items(), expected);
        }
        sizing.learn(4000, Duration::ZERO);
        assert_eq!(sizing.items(), MOST);
        sizing.fix(7);
        assert_eq!((sizing.items(), sizing.chunks()), (7, MOST_CHUNKS));
    }

    #[test]
    fn long_tasks_travel_alone_and_a_wait_in_a_node_counts_little() {
        let mut sizing = Sizing::default();
        sizing.learn(1, Duration::from_millis(20));
        assert_eq!(sizing.items(), 1);
        let mut sizing = Sizing::default();
        sizing.learn(4, Duration::from_millis(4));
        sizing.learn(4, Duration::from_millis(64));
        assert_eq!(sizing.items(), 2);
    }
}
