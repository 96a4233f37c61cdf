//! How many items make a piece.
//!
//! A frame costs a worker and the host about a microsecond together, and a wake-up some tens of them; half a
//! millisecond of work makes both vanish and is still short enough that workers end at the same time. While it is not known
//! how long an item takes, a piece is one item; then pieces grow at most eightfold at a time.

use std::time::Duration;

/// Work in a piece, as far as it can be told beforehand.
const AIM: Duration = Duration::from_micros(500);

/// A worker that has been at a piece for so long gives the rest back.
pub(super) const BUDGET: Duration = Duration::from_millis(2);

/// Less work than this is not worth a frame of its own: about a wake-up.
const LEAST: Duration = Duration::from_micros(50);

/// No piece has more items.
const MOST_ITEMS: u32 = 4096;

/// Bytes of arguments, and of results, that a piece may have: several fit into a ring of 256 KiB.
const MOST_BYTES: u32 = 32 * 1024;

/// How much a piece counts less for each later one: the average follows items that become slower or faster.
const FADING: f64 = 0.95;

/// The size of pieces: fixed by the user, or learnt.
#[derive(Debug)]
pub(super) struct Sizing {
    fixed: Option<u32>,
    workers: usize,
    /// Fading sums over the pieces that have ended.
    items: f64,
    seconds: f64,
    result_bytes: f64,
    /// Items of the largest piece that has ended as a whole.
    largest: u32,
}

impl Sizing {
    pub(super) fn new(workers: usize) -> Self {
        Self { fixed: None, workers, items: 0.0, seconds: 0.0, result_bytes: 0.0, largest: 0 }
    }

    pub(super) fn fix(&mut self, items: usize) {
        self.fixed = Some(u32::try_from(items.max(1)).unwrap_or(u32::MAX));
    }

    /// Whether the user has said how many.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed.is_some()
    }

    /// When a worker gives the rest of a piece back.
    pub(super) fn budget(&self) -> Duration {
        if self.fixed.is_some() { Duration::MAX } else { BUDGET }
    }

    /// Bytes of arguments after which a piece is full.
    pub(super) fn argument_bytes(&self) -> usize {
        if self.fixed.is_some() { usize::MAX } else { MOST_BYTES as usize }
    }

    /// In how many pieces what a worker gave back is sent again: a slow item may be followed by others, which all workers
    /// are to share.
    pub(super) fn parts(&self) -> usize {
        if self.fixed.is_some() { 1 } else { 2 * self.workers }
    }

    /// Items for the next piece, when so many inputs are known to be left.
    pub(super) fn next(&self, left: Option<usize>) -> u32 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if self.largest == 0 {
            return 1;
        }
        let by_time = self.worth(AIM);
        let by_bytes = as_count(f64::from(MOST_BYTES) * self.items / self.result_bytes.max(1.0));
        let by_growth = self.largest.saturating_mul(8);
        // Towards the end pieces get smaller, so that no worker sits on a large one while the others are done.
        let by_end = left.map_or(u32::MAX, |left| {
            let share = u32::try_from(left / (2 * self.workers)).unwrap_or(u32::MAX);
            share.max(self.worth(LEAST))
        });
        by_time.min(by_bytes).min(by_growth).min(by_end).clamp(1, MOST_ITEMS)
    }

    /// A piece has ended: so many of its items were answered.
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

    /// As many items as take so long.
    fn worth(&self, time: Duration) -> u32 {
        as_count(time.as_secs_f64() * self.items / self.seconds.max(1e-12))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an `as` from a float ends at the limits of the integer, which is meant"
)]
fn as_count(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(items: u32, nanos_each: u64, result_bytes: usize) -> Sizing {
        let mut sizing = Sizing::new(2);
        sizing.learn(
            items,
            Duration::from_nanos(nanos_each) * items,
            result_bytes * items as usize,
        );
        sizing
    }

    #[test]
    fn the_first_pieces_are_single_items_and_growth_is_bounded() {
        assert_eq!(Sizing::new(2).next(None), 1);
        assert_eq!(learnt(1, 50, 0).next(None), 8);
        assert_eq!(learnt(8, 50, 0).next(None), 64);
        assert_eq!(learnt(4096, 50, 0).next(None), 4096);
    }

    #[test]
    fn a_piece_is_half_a_millisecond_of_work() {
        assert_eq!(learnt(100, 10_000, 0).next(None), 50);
        assert_eq!(learnt(100, 600_000, 0).next(None), 1);
    }

    #[test]
    fn large_results_make_small_pieces() {
        assert_eq!(learnt(100, 100, 1024).next(None), 32);
        assert_eq!(learnt(100, 100, 1 << 20).next(None), 1);
    }

    #[test]
    fn the_last_pieces_are_smaller_but_worth_a_frame() {
        assert_eq!(learnt(4096, 1_000, 0).next(Some(1_000_000)), 500);
        assert_eq!(learnt(4096, 1_000, 0).next(Some(800)), 200);
        assert_eq!(learnt(4096, 1_000, 0).next(Some(10)), 50);
    }

    #[test]
    fn one_slow_item_among_fast_ones_is_not_forgotten_at_once() {
        let mut sizing = learnt(100, 10_000, 0);
        sizing.learn(1, Duration::from_millis(100), 0);
        for _ in 0..10 {
            sizing.learn(1, Duration::from_micros(10), 0);
        }
        assert!(sizing.next(None) < 5, "{}", sizing.next(None));
    }

    #[test]
    fn a_fixed_size_is_kept() {
        let mut sizing = Sizing::new(2);
        sizing.fix(0);
        assert_eq!(sizing.next(None), 1);
        sizing.fix(10_000);
        sizing.learn(10_000, Duration::from_secs(1), 1 << 30);
        assert_eq!(sizing.next(Some(3)), 10_000);
        assert_eq!(sizing.budget(), Duration::MAX);
    }
}
