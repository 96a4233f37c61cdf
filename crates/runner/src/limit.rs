//! Time limits of jobs.

use std::str::FromStr;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::LimitError;

/// The time limit of one attempt of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// A fixed duration.
    Fixed(Duration),
    /// A multiple of the median duration of successful jobs; applies from [`MIN_JOBS_FOR_MEDIAN`]
    /// successes on.
    OfMedian(f64),
}

/// The minimum number of successful jobs for a median. Fewer say little; GNU parallel waits for the
/// same number.
pub const MIN_JOBS_FOR_MEDIAN: u64 = 3;

/// Three significant digits: the median is exact to a tenth of a percent.
const DIGITS: u8 = 3;

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let wrong = || LimitError { text: text.to_owned() };
        let number = text.strip_suffix('%').unwrap_or(text);
        let value: f64 = number.parse().map_err(|_| wrong())?;
        if text.ends_with('%') {
            return if value > 0.0 && value.is_finite() {
                Ok(Self::OfMedian(value / 100.0))
            } else {
                Err(wrong())
            };
        }
        match Duration::try_from_secs_f64(value) {
            Ok(limit) if !limit.is_zero() => Ok(Self::Fixed(limit)),
            _ => Err(wrong()),
        }
    }
}

/// The median of durations, in constant memory.
#[derive(Debug)]
pub(crate) struct Durations(Histogram<u64>);

impl Durations {
    pub(crate) fn new() -> Self {
        #[expect(clippy::expect_used, reason = "fails only for more than five digits")]
        Self(Histogram::new(DIGITS).expect("three digits are supported"))
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        // The histogram can hold any number of microseconds but the largest, which is 584,000
        // years.
        let _ = self.0.record(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Returns the limit at this moment, or `None` if too few jobs have succeeded.
    pub(crate) fn limit(&self, limit: Limit) -> Option<Duration> {
        match limit {
            Limit::Fixed(limit) => Some(limit),
            Limit::OfMedian(times) if self.0.len() >= MIN_JOBS_FOR_MEDIAN => {
                let median = Duration::from_micros(self.0.value_at_quantile(0.5));
                Duration::try_from_secs_f64(median.as_secs_f64() * times).ok()
            }
            Limit::OfMedian(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_seconds_or_a_percentage_of_the_median() {
        assert_eq!("2.5".parse(), Ok(Limit::Fixed(Duration::from_millis(2500))));
        assert_eq!("300%".parse(), Ok(Limit::OfMedian(3.0)));
        for wrong in ["", "0", "-1", "a", "0%", "%", "nan", "inf", "inf%"] {
            assert!(wrong.parse::<Limit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_median_needs_three_jobs() {
        let mut durations = Durations::new();
        let limit = Limit::OfMedian(2.0);
        for seconds in [1, 3] {
            durations.record(Duration::from_secs(seconds));
            assert_eq!(durations.limit(limit), None);
        }
        durations.record(Duration::from_secs(2));
        let now = durations.limit(limit).expect("three jobs are known");
        assert!((3.99..4.01).contains(&now.as_secs_f64()), "{now:?}");
    }
}
