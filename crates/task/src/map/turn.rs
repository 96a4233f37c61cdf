//! The order in which a map yields results.

use std::collections::{BTreeMap, VecDeque};

use super::ChunkResults;

/// Chooses the results to yield next.
#[doc(hidden)]
pub trait Turn<C> {
    /// Takes the results to yield next out of those that have arrived, if they are among them.
    fn next(&mut self, arrived: &mut VecDeque<C>) -> Option<C>;
}

/// The order of the inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct InOrder<C> {
    /// Position after the results that are being yielded.
    next: u64,
    /// Later results, by the position of the first one.
    early: BTreeMap<u64, C>,
}

/// The order of completion.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Arrival;

impl<C> Default for InOrder<C> {
    fn default() -> Self {
        Self { next: 0, early: BTreeMap::new() }
    }
}

impl<C: ChunkResults> Turn<C> for InOrder<C> {
    fn next(&mut self, arrived: &mut VecDeque<C>) -> Option<C> {
        let Self { next, early } = self;
        early.extend(arrived.drain(..).map(|results| (results.positions().start, results)));
        let results = early.remove(next)?;
        *next = results.positions().end;
        Some(results)
    }
}

impl<C> Turn<C> for Arrival {
    fn next(&mut self, arrived: &mut VecDeque<C>) -> Option<C> {
        arrived.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// Results at a position, and their number.
    #[derive(Debug, PartialEq, Eq)]
    struct Results(u64, u64);

    impl ChunkResults for Results {
        fn positions(&self) -> Range<u64> {
            self.0..self.0 + self.1
        }
    }

    #[test]
    fn results_wait_for_those_before_them() {
        let mut turn = InOrder::default();
        let mut arrived = VecDeque::from([Results(3, 1), Results(0, 2)]);
        assert_eq!(turn.next(&mut arrived), Some(Results(0, 2)));
        assert_eq!(turn.next(&mut arrived), None);
        arrived.push_back(Results(2, 1));
        assert_eq!(turn.next(&mut arrived), Some(Results(2, 1)));
        assert_eq!(turn.next(&mut arrived), Some(Results(3, 1)));
        assert_eq!(turn.next(&mut arrived), None);
    }
}
