//! Choices that a seed repeats.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::Duration;

/// A generator that gives the same numbers for the same seed (`SplitMix64`): good enough for tests, for nothing else.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The generator for `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A seed that nobody has used before.
    pub fn fresh_seed() -> u64 {
        // The standard library's hasher is keyed by the system's generator.
        RandomState::new().hash_one("seed")
    }

    /// A seed from the environment variable `variable`, or a fresh one.
    ///
    /// # Panics
    /// When the variable is there and is no number.
    pub fn seed_from(variable: &str) -> u64 {
        match std::env::var(variable) {
            Ok(text) => {
                text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}"))
            }
            Err(_) => Self::fresh_seed(),
        }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number in a range that is not empty.
    ///
    /// # Panics
    /// When the range is empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        assert!(!range.is_empty(), "no number lies in {range:?}");
        range.start + self.number() % (range.end - range.start)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.within(0..100) < percent
    }

    /// One of several.
    ///
    /// # Panics
    /// When there is none.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.within(0..from.len() as u64);
        &from[usize::try_from(index).expect("an index of a slice")]
    }

    /// A duration below `limit`.
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
