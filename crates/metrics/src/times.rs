//! Times of one kind, in constant memory: an HDR histogram.

use std::time::Duration;

use hdrhistogram::{Counter, Histogram};

use crate::Distribution;

/// The longest time of the histogram: one hour.
const MAX: u64 = 3_600_000_000_000;

/// Two significant digits: the values that share a count differ by less than 1 %.
const DIGITS: u8 = 2;

/// Times of one kind, in nanoseconds, in constant memory: 37 KiB, or half of that with counts of 32
/// bits. Times above one hour count as one hour in the quantiles.
#[derive(Debug, Clone)]
pub struct Times<C: Counter = u64> {
    histogram: Histogram<C>,
    /// Exact, as the histogram rounds.
    sum: u128,
    min: u64,
    max: u64,
}

impl<C: Counter> Default for Times<C> {
    #[expect(clippy::expect_used, reason = "the constants are in the allowed range")]
    fn default() -> Self {
        let histogram = Histogram::new_with_max(MAX, DIGITS).expect("constant bounds");
        Self { histogram, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl<C: Counter> Times<C> {
    /// Adds a time that `count` tasks have taken.
    #[inline]
    pub fn record(&mut self, nanos: u64, count: u32) {
        let Some(as_counter) = C::from_u32(count).filter(|_| count > 0) else { return };
        // Within the bounds, which makes an error impossible.
        let _ = self.histogram.record_n(nanos.min(MAX), as_counter);
        self.sum += u128::from(nanos) * u128::from(count);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds all times of another record.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds, which makes an error impossible.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the summary.
    pub fn distribution(&self) -> Distribution {
        let count = self.count();
        if count == 0 {
            return Distribution::default();
        }
        let [p50, p90, p95, p99] = self.quantiles([(1, 2), (9, 10), (19, 20), (99, 100)]);
        Distribution {
            count,
            min: Duration::from_nanos(self.min),
            mean: Duration::from_nanos(
                u64::try_from(self.sum / u128::from(count)).unwrap_or(u64::MAX),
            ),
            p50,
            p90,
            p95,
            p99,
            max: Duration::from_nanos(self.max),
        }
    }

    /// Returns time number `⌊n · a / b⌋` in ascending order for each fraction, which ascend too.
    fn quantiles<const N: usize>(&self, fractions: [(u128, u128); N]) -> [Duration; N] {
        let count = u128::from(self.count());
        let mut values = self.histogram.iter_recorded();
        let (mut seen, mut value) = (0_u128, 0);
        fractions.map(|(a, b)| {
            let rank = count * a / b;
            while seen <= rank
                && let Some(next) = values.next()
            {
                seen += u128::from(next.count_since_last_iteration());
                let highest = next.value_iterated_to();
                let lowest = self.histogram.lowest_equivalent(highest);
                value = lowest + (highest - lowest) / 2;
            }
            Duration::from_nanos(value.clamp(self.min, self.max))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Panics unless the summary is that of `times`, within the documented precision.
    fn check(mut times: Vec<u64>) {
        let mut record = Times::<u64>::default();
        for time in &times {
            record.record(*time, 1);
        }
        times.sort_unstable();
        let found = record.distribution();
        let n = times.len();
        assert_eq!(found.count, n as u64);
        let sum: u128 = times.iter().map(|time| u128::from(*time)).sum();
        assert_eq!(found.mean.as_nanos(), sum / n as u128);
        let quantiles = [(n / 2, found.p50), (n * 9 / 10, found.p90), (n * 19 / 20, found.p95)];
        let others = [(n * 99 / 100, found.p99), (0, found.min), (n - 1, found.max)];
        for (rank, found) in quantiles.into_iter().chain(others) {
            let (exact, found) = (times[rank], u64::try_from(found.as_nanos()).unwrap());
            assert!(found.abs_diff(exact) <= exact / 100, "{found} at rank {rank}, exact {exact}");
        }
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_times(
            times in prop::collection::vec((0..=MAX, 0_u32..40), 1..300)
        ) {
            check(times.into_iter().map(|(time, shift)| time >> shift).collect());
        }
    }

    #[test]
    fn quantiles_of_a_million_times_are_within_one_percent() {
        let mut state = 1_u64;
        let times = (0..1_000_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // From 1 ns to 17 s, spread over all orders of magnitude.
            (state >> 30) >> (state % 34)
        });
        check(times.collect());
    }

    #[test]
    fn the_median_of_two_times_is_the_larger_one() {
        let mut times = Times::<u32>::default();
        times.record(1_000, 1);
        times.record(3_000, 1);
        assert!(times.distribution().p50 > Duration::from_nanos(2_900));
    }

    #[test]
    fn times_beyond_the_range_are_counted() {
        let mut times = Times::<u64>::default();
        times.record(u64::MAX, 3);
        times.record(0, 0);
        let distribution = times.distribution();
        assert_eq!((distribution.count, distribution.max), (3, Duration::from_nanos(u64::MAX)));
    }

    #[test]
    fn the_sum_of_two_records_is_the_record_of_all() {
        let (mut all, mut parts) =
            (Times::<u64>::default(), [Times::<u64>::default(), Times::default()]);
        for time in 1..1_000 {
            all.record(time * time, 2);
            parts[usize::from(time % 3 == 0)].record(time * time, 2);
        }
        let [mut sum, rest] = parts;
        sum.add(&rest);
        assert_eq!(sum.distribution(), all.distribution());
    }
}
