//! Number and pauses of the attempts at something that may fail.

use std::time::Duration;

/// The number of attempts at something that may fail, and the pauses between them.
///
/// Pauses grow by a factor from attempt to attempt, up to a maximum. Jitter makes them differ, so
/// that tasks which failed together do not come back together. It is made of the number of the task
/// that the caller passes, and so is the same in each run.
///
/// ```
/// use brigade_base::Retry;
/// use std::time::Duration;
///
/// let retry = Retry::new().attempts(5).delay(Duration::from_millis(100)).factor(3.0);
/// let retry = retry.max_delay(Duration::from_secs(2));
/// let pauses: Vec<_> = (1..5).map(|failed| retry.pause(failed, 0).as_millis()).collect();
/// assert_eq!(pauses, [100, 300, 900, 2000]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[must_use = "it is a setting"]
pub struct Retry {
    attempts: u32,
    delay: Duration,
    factor: f64,
    max_delay: Option<Duration>,
    jitter: f64,
    seed: u64,
}

/// The maximum pause, unless another one is set.
const USUAL_MAX: Duration = Duration::from_secs(60);

/// Number of attempts after which pauses grow no more, if the factor is so small that they have not
/// reached the maximum by then.
const MAX_STEPS: u32 = 1_000;

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

impl Retry {
    /// Returns three attempts without a pause.
    pub const fn new() -> Self {
        Self {
            attempts: 3,
            delay: Duration::ZERO,
            factor: 2.0,
            max_delay: None,
            jitter: 0.0,
            seed: 0,
        }
    }

    /// Returns this number of attempts after the first one, without a pause.
    #[doc(hidden)]
    pub const fn of(retries: u32) -> Self {
        Self::new().attempts(retries.saturating_add(1))
    }

    /// Sets the number of attempts, the first one included. Values below 1 count as 1. Default: 3.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = if attempts == 0 { 1 } else { attempts };
        self
    }

    /// Sets the pause after the first attempt. Default: none.
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the number by which each pause is longer than the one before. Values below 1 count as
    /// 1, which leaves all pauses the same. Default: 2.
    pub const fn factor(mut self, factor: f64) -> Self {
        // Also if it is not a number.
        self.factor = if factor >= 1.0 { factor } else { 1.0 };
        self
    }

    /// Sets the maximum pause. Default: 60 s, or the first pause if that is longer.
    pub const fn max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = Some(max_delay);
        self
    }

    /// Sets the share of each pause that is left to chance, from 0 to 1: with 0.5, pauses are
    /// between half of their length and all of it. Default: 0.
    pub const fn jitter(mut self, share: f64) -> Self {
        self.jitter = if share > 1.0 {
            1.0
        } else if share > 0.0 {
            share
        } else {
            0.0
        };
        self
    }

    /// Sets a number of which chance is made, in addition to the task and the attempt. Give
    /// different ones to programs that fail together. Default: 0.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Returns the number of attempts after the first one.
    #[doc(hidden)]
    pub const fn retries(&self) -> u32 {
        self.attempts - 1
    }

    /// Returns `true` if no attempt waits.
    #[doc(hidden)]
    pub fn is_immediate(&self) -> bool {
        self.delay.is_zero()
    }

    /// Returns the pause after this number of failed attempts at the task with this number.
    pub fn pause(&self, failed: u32, task: u64) -> Duration {
        let max_delay = self.max_delay.unwrap_or_else(|| self.delay.max(USUAL_MAX));
        let most = max_delay.as_secs_f64();
        let mut seconds = self.delay.as_secs_f64();
        // A product, because powers differ from machine to machine.
        for _ in 1..failed.min(MAX_STEPS) {
            if seconds <= 0.0 || seconds >= most || self.factor <= 1.0 {
                break;
            }
            seconds *= self.factor;
        }
        let random = mixed(mixed(mixed(self.seed) ^ task) ^ u64::from(failed));
        let chance = f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX);
        let seconds = seconds.min(most) * (1.0 - self.jitter * chance);
        Duration::try_from_secs_f64(seconds).unwrap_or(max_delay).min(max_delay)
    }
}

/// Returns a number that shows no relation to this one: the output function of `SplitMix64`.
const fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn without_a_delay_there_is_no_pause() {
        let retry = Retry::new().factor(10.0).jitter(1.0);
        assert_eq!((retry.pause(1, 7), retry.pause(u32::MAX, 7)), (Duration::ZERO, Duration::ZERO));
        assert!(retry.is_immediate());
    }

    #[test]
    fn odd_settings_count_as_the_nearest_that_make_sense() {
        let retry = Retry::new().attempts(0).delay(SECOND).factor(f64::NAN).jitter(f64::NAN);
        assert_eq!((retry.retries(), retry.pause(9, u64::MAX)), (0, SECOND));
        let retry = retry.factor(-1.0).jitter(7.0);
        let mut pauses = (0..100).map(|task| retry.pause(9, task));
        assert!(pauses.all(|pause| pause <= SECOND));
        let endless = Retry::new().delay(Duration::MAX);
        assert_eq!(endless.factor(f64::INFINITY).pause(9, 0), Duration::MAX);
    }

    #[test]
    fn pauses_grow_to_a_minute_or_stay_at_the_first_one() {
        let third = |first| Retry::new().delay(first).factor(10.0).pause(3, 0);
        assert_eq!(third(SECOND), 60 * SECOND);
        assert_eq!(third(300 * SECOND), 300 * SECOND);
    }

    #[test]
    fn jitter_differs_by_task_attempt_and_seed() {
        let retry = Retry::new().delay(SECOND).factor(1.0).jitter(1.0);
        let pauses = |retry: Retry, failed| (0..100).map(move |task| retry.pause(failed, task));
        let sum: Duration = pauses(retry, 1).sum();
        assert!((40..60).contains(&sum.as_secs()), "{sum:?} is not about half of the maximum");
        for other in [pauses(retry, 2), pauses(retry.seed(1), 1)] {
            assert!(pauses(retry, 1).zip(other).all(|(one, other)| one != other));
        }
    }

    proptest! {
        #[test]
        fn pauses_grow_and_keep_within_their_bounds(
            millis in 0..100_000_u64,
            factor in 0.0..10.0_f64,
            most in 0..100_000_u64,
            jitter in 0.0..=1.0_f64,
            task: u64,
        ) {
            let (delay, most) = (Duration::from_millis(millis), Duration::from_millis(most));
            let exact = Retry::new().delay(delay).factor(factor).max_delay(most);
            let retry = exact.jitter(jitter);
            let mut last = Duration::ZERO;
            for failed in 1..20 {
                let pause = exact.pause(failed, task);
                prop_assert!(pause >= last && pause <= most);
                let least = pause.mul_f64(1.0 - jitter).saturating_sub(Duration::from_nanos(2));
                let jittered = retry.pause(failed, task);
                prop_assert!(jittered >= least && jittered <= pause);
                prop_assert_eq!(jittered, retry.pause(failed, task));
                last = pause;
            }
        }
    }
}
