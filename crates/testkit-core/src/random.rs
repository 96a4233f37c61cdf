//! Random choices that a seed repeats.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::Duration;

use brigade_base::SplitMix64;

/// A generator that yields the same numbers for the same seed. Good enough for tests only.
#[derive(Debug, Clone)]
pub struct Random {
    numbers: SplitMix64,
}

impl Random {
    /// Creates the generator for `seed`.
    pub fn new(seed: u64) -> Self {
        Self { numbers: SplitMix64::new(seed) }
    }

    /// Returns a random seed.
    pub fn fresh_seed() -> u64 {
        // The standard library's hasher is keyed by the system's generator.
        RandomState::new().hash_one("seed")
    }

    /// Returns the seed in the environment variable `variable`, or a fresh one.
    ///
    /// # Panics
    /// Panics if the variable is set and not a number.
    pub fn seed_from(variable: &str) -> u64 {
        match std::env::var(variable) {
            Ok(text) => {
                text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}"))
            }
            Err(_) => Self::fresh_seed(),
        }
    }

    /// Returns a random number.
    pub fn number(&mut self) -> u64 {
        self.numbers.number()
    }

    /// Returns a number within `range`.
    ///
    /// # Panics
    /// Panics if the range is empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        assert!(!range.is_empty(), "no number lies in {range:?}");
        range.start + self.number() % (range.end - range.start)
    }

    /// Returns `true` in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    /// Returns a random element.
    ///
    /// # Panics
    /// Panics if `from` is empty.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.within(0..from.len() as u64);
        &from[usize::try_from(index).expect("an index of a slice")]
    }

    /// Returns a duration shorter than `limit`.
    pub fn below(&mut self, limit: Duration) -> Duration {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.within(0..nanoseconds.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_repeats_its_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [random.number(), random.within(3..9), u64::from(random.chance(50))]
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn numbers_stay_in_their_range_and_reach_all_of_it() {
        let mut random = Random::new(1);
        let mut seen = [false; 4];
        for _ in 0..200 {
            seen[usize::try_from(random.within(0..4)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 4]);
    }
}
