//! Decides how many items make a chunk, and how many chunks are under way: self-scheduling, with
//! chunks of about the same time, which is learned by exponential smoothing.
//!
//! A frame costs a worker and the host about a microsecond together, and a wake-up some tens of
//! microseconds. Three milliseconds of work make both negligible, and are still short enough for
//! all workers to finish at about the same time. While the run time of an item is unknown, a chunk
//! is one item. Then chunks grow at most eightfold at a time.

use std::time::Duration;

/// Number of frames per worker: one that runs, one that is ready when it ends, one that replaces
/// that one.
const FRAMES: usize = 3;

/// Amount of work intended for a chunk.
const AIM: Duration = Duration::from_millis(3);

/// Time after which a worker returns the remaining items of a chunk.
pub(super) const BUDGET: Duration = Duration::from_millis(6);

/// The least work that is worth a frame of its own: about a wake-up.
const MIN: Duration = Duration::from_micros(50);

/// Maximum number of items of a chunk.
const MAX_ITEMS: u32 = 4096;

/// Maximum size of the arguments, and of the results, of a chunk: several chunks fit into a ring of
/// 256 KiB.
const MAX_BYTES: u32 = 32 * 1024;

/// Factor by which the weight of a chunk decreases with each later one, so that the average follows
/// items that become slower or faster.
const FADING: f64 = 0.95;

/// The size of chunks: set by the user, or learned.
#[derive(Debug, Default)]
pub(super) struct ChunkSizing {
    fixed: Option<u32>,
    workers: usize,
    /// `true` if chunks run one after the other.
    one_at_a_time: bool,
    /// Decaying sums over the chunks that have ended.
    items: f64,
    seconds: f64,
    result_bytes: f64,
    /// Number of items of the largest chunk that has ended.
    largest: u32,
}

impl ChunkSizing {
    pub(super) fn new(workers: usize) -> Self {
        Self { workers, ..Self::default() }
    }

    pub(super) fn fix(&mut self, items: usize) {
        self.fixed = Some(u32::try_from(items.max(1)).unwrap_or(u32::MAX));
    }

    pub(super) fn set_one_at_a_time(&mut self) {
        self.one_at_a_time = true;
    }

    /// Returns the maximum number of chunks that are under way.
    pub(super) fn frames(&self, workers: usize) -> usize {
        if self.one_at_a_time { 1 } else { FRAMES * workers }
    }

    /// Returns `true` if the user has set the size.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// Returns the time after which a worker returns the remaining items of a chunk.
    pub(super) fn budget(&self) -> Duration {
        if self.fixed.is_some() { Duration::MAX } else { BUDGET }
    }

    /// Returns the size of arguments at which a chunk is full.
    pub(super) fn argument_bytes(&self) -> usize {
        if self.fixed.is_some() { usize::MAX } else { MAX_BYTES as usize }
    }

    /// Returns the number of chunks into which items that come back are divided. A slow item may be
    /// followed by others, which all workers should share.
    pub(super) fn parts(&self) -> u32 {
        let is_one = self.fixed.is_some() || self.one_at_a_time;
        let parts = if is_one { 1 } else { 2 * self.workers };
        u32::try_from(parts).unwrap_or(u32::MAX)
    }

    /// Returns the number of items for the next chunk. `left` is the number of remaining inputs, if
    /// known.
    pub(super) fn next(&self, left: Option<usize>) -> u32 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.largest == 0 {
            return 1;
        }
        let by_time = self.worth(AIM);
        let by_bytes = as_count(f64::from(MAX_BYTES) * self.items / self.result_bytes.max(1.0));
        let by_growth = self.largest.saturating_mul(8);
        // Toward the end chunks get smaller, so that no worker is busy with a large one when the
        // others are done.
        let by_end = left.map_or(u32::MAX, |left| {
            let share = u32::try_from(left / (2 * self.workers)).unwrap_or(u32::MAX);
            share.max(self.worth(MIN))
        });
        by_time.min(by_bytes).min(by_growth).min(by_end).clamp(1, MAX_ITEMS)
    }

    /// Updates the averages after a chunk has ended with this number of finished items.
    pub(super) fn learn(&mut self, items: u32, run_time: Duration, result_bytes: usize) {
        if items == 0 {
            return;
        }
        let result_bytes = u32::try_from(result_bytes).unwrap_or(u32::MAX);
        self.items = self.items * FADING + f64::from(items);
        self.seconds = self.seconds * FADING + run_time.as_secs_f64();
        self.result_bytes = self.result_bytes * FADING + f64::from(result_bytes);
        self.largest = self.largest.max(items);
    }

    /// Returns the number of items that take this time.
    fn worth(&self, time: Duration) -> u32 {
        as_count(time.as_secs_f64() * self.items / self.seconds.max(1e-12))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` from a float saturates at the limits of the integer, as intended"
)]
fn as_count(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(items: u32, nanos_each: u64, result_bytes: usize) -> ChunkSizing {
        let mut sizing = ChunkSizing::new(2);
        sizing.learn(
            items,
            Duration::from_nanos(nanos_each) * items,
            result_bytes * items as usize,
        );
        sizing
    }

    #[test]
    fn the_first_chunk_is_one_item_and_growth_is_bounded() {
        assert_eq!(ChunkSizing::new(2).next(None), 1);
        assert_eq!(learned(1, 50, 0).next(None), 8);
        assert_eq!(learned(8, 50, 0).next(None), 64);
        assert_eq!(learned(4096, 50, 0).next(None), 4096);
    }

    #[test]
    fn a_chunk_is_three_milliseconds_of_work() {
        assert_eq!(learned(100, 10_000, 0).next(None), 300);
        assert_eq!(learned(100, 2_400_000, 0).next(None), 1);
    }

    #[test]
    fn large_results_make_small_chunks() {
        assert_eq!(learned(100, 100, 1024).next(None), 32);
        assert_eq!(learned(100, 100, 1 << 20).next(None), 1);
    }

    #[test]
    fn the_last_chunks_are_smaller_but_worth_a_frame() {
        assert_eq!(learned(4096, 1_000, 0).next(Some(1_000_000)), 3_000);
        assert_eq!(learned(4096, 1_000, 0).next(Some(800)), 200);
        assert_eq!(learned(4096, 1_000, 0).next(Some(10)), 50);
    }

    #[test]
    fn one_slow_item_is_remembered_for_a_while() {
        let mut sizing = learned(100, 10_000, 0);
        sizing.learn(1, Duration::from_millis(100), 0);
        for _ in 0..10 {
            sizing.learn(1, Duration::from_micros(10), 0);
        }
        assert!(sizing.next(None) < 5, "{}", sizing.next(None));
    }

    #[test]
    fn a_fixed_chunk_size_is_kept() {
        let mut sizing = ChunkSizing::new(2);
        sizing.fix(0);
        assert_eq!(sizing.next(None), 1);
        sizing.fix(10_000);
        sizing.learn(10_000, Duration::from_secs(1), 1 << 30);
        assert_eq!(sizing.next(Some(3)), 10_000);
        assert_eq!(sizing.budget(), Duration::MAX);
    }
}
