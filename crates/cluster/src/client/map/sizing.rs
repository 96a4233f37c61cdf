//! The number of items of a chunk: as many as make a few milliseconds of work. Pure, except for
//! the memory of earlier maps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::sync::Mutex;

/// The work in a chunk. Enough that the cost of a message, about 50 µs, does not count.
const TARGET: Duration = Duration::from_millis(4);

/// Most items of a chunk.
const MAX: u32 = 4096;

/// Growth from one chunk that is done to the next. From 1 to 4,096 items in three round trips.
const GROWTH: u32 = 16;

/// Most items of the first chunks of a task that was mapped before: its items may take longer this
/// time.
const FAMILIAR: u32 = 64;

/// The weight of a longer run time than expected is one part in 16, because it may include a time
/// in the queue of the node.
const CAUTION: u32 = 16;

/// Chunks in flight before the first result, so that long tasks are spread over all nodes, and
/// while chunks grow, so that the map is not sent in small ones. Each result adds as many.
const FIRST_CHUNKS: usize = 16;

/// Chunks in flight at most, for thousands of workers.
const MAX_CHUNKS: usize = 1024;

/// Learns the size of chunks from the run times of those that are done.
#[derive(Debug)]
pub(super) struct Sizing {
    fixed: Option<u32>,
    /// Run time of an item; `None` before the first result, unless an earlier map knew it.
    per_item: Option<Duration>,
    /// The size up to which chunks may grow.
    limit: u32,
    /// Number of chunks that may be in flight once they have their size.
    chunks: usize,
}

impl Sizing {
    /// Begins with the run time of an item in an earlier map, if there was one.
    pub(super) fn new(per_item: Option<Duration>) -> Self {
        let (limit, chunks) = match per_item {
            Some(_) => (FAMILIAR, MAX_CHUNKS),
            None => (1, FIRST_CHUNKS),
        };
        Self { fixed: None, per_item, limit, chunks }
    }

    /// Sets the size of all chunks.
    pub(super) fn fix(&mut self, items: u32) {
        self.fixed = Some(items.clamp(1, MAX));
    }

    pub(super) fn fixed(&self) -> Option<u32> {
        self.fixed
    }

    /// Returns the run time of an item, if it is known.
    pub(super) fn per_item(&self) -> Option<Duration> {
        self.per_item
    }

    /// Returns the number of items of the next chunk.
    pub(super) fn items(&self) -> u32 {
        self.fixed.unwrap_or_else(|| self.wanted().min(self.limit))
    }

    /// Returns the number of chunks that may be in flight.
    pub(super) fn chunks(&self) -> usize {
        if self.fixed.is_some() {
            MAX_CHUNKS
        } else if self.wanted() > self.limit {
            FIRST_CHUNKS
        } else {
            self.chunks
        }
    }

    /// Returns the number of items that make the work of a chunk.
    fn wanted(&self) -> u32 {
        let Some(per_item) = self.per_item else { return 1 };
        let wanted = TARGET.as_nanos() / per_item.as_nanos().max(1);
        u32::try_from(wanted).unwrap_or(MAX).clamp(1, MAX)
    }

    /// Learns from a chunk that is done.
    pub(super) fn learn(&mut self, items: u32, run_time: Duration) {
        self.limit = self.limit.max(items.saturating_mul(GROWTH));
        self.chunks = MAX_CHUNKS.min(self.chunks + FIRST_CHUNKS);
        let sample = run_time / items.max(1);
        self.per_item = Some(match self.per_item {
            Some(known) if sample > known => known + sample.saturating_sub(known) / CAUTION,
            _ => sample,
        });
    }
}

/// Run times of items in earlier maps, by the names of the tasks.
#[derive(Debug, Default)]
pub(in crate::client) struct ItemTimes {
    /// Nothing that panics runs under this lock.
    per_item: Mutex<HashMap<Arc<str>, Duration>>,
}

impl ItemTimes {
    pub(super) fn get(&self, name: &str) -> Option<Duration> {
        self.per_item.lock().get(name).copied()
    }

    pub(super) fn set(&self, name: &Arc<str>, per_item: Duration) {
        self.per_item.lock().insert(Arc::clone(name), per_item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_grow_until_they_are_worth_their_message() {
        let mut sizing = Sizing::new(None);
        assert_eq!((sizing.items(), sizing.chunks()), (1, FIRST_CHUNKS));
        for expected in [16, 256, 4000, 4000] {
            let items = sizing.items();
            sizing.learn(items, Duration::from_micros(1) * items);
            assert_eq!(sizing.items(), expected);
        }
        assert!(sizing.chunks() > FIRST_CHUNKS);
        sizing.learn(4000, Duration::ZERO);
        assert_eq!(sizing.items(), MAX);
        sizing.fix(7);
        assert_eq!((sizing.items(), sizing.chunks()), (7, MAX_CHUNKS));
    }

    #[test]
    fn long_tasks_travel_alone_and_a_wait_in_a_node_counts_little() {
        let mut sizing = Sizing::new(None);
        sizing.learn(1, Duration::from_millis(20));
        assert_eq!(sizing.items(), 1);
        let mut sizing = Sizing::new(None);
        sizing.learn(4, Duration::from_millis(4));
        sizing.learn(4, Duration::from_millis(64));
        assert_eq!(sizing.items(), 2);
    }

    #[test]
    fn few_chunks_are_in_flight_while_they_are_too_small() {
        let mut sizing = Sizing::new(None);
        sizing.learn(1, Duration::from_micros(50));
        assert_eq!((sizing.items(), sizing.chunks()), (16, FIRST_CHUNKS));
        // The first task waited for the start of its worker.
        let mut sizing = Sizing::new(None);
        sizing.learn(1, Duration::from_millis(30));
        assert_eq!((sizing.items(), sizing.chunks()), (1, 2 * FIRST_CHUNKS));
        for _ in 0..MAX_CHUNKS {
            sizing.learn(1, Duration::from_millis(30));
        }
        assert_eq!((sizing.items(), sizing.chunks()), (1, MAX_CHUNKS));
    }

    #[test]
    fn a_task_that_was_mapped_before_begins_with_larger_chunks() {
        let brief = Sizing::new(Some(Duration::from_micros(1)));
        assert_eq!((brief.items(), brief.chunks()), (FAMILIAR, FIRST_CHUNKS));
        let long = Sizing::new(Some(Duration::from_millis(100)));
        assert_eq!((long.items(), long.chunks()), (1, MAX_CHUNKS));
    }
}
