//! The ranges of an arena that are lent, so that the rest can be given back when its worker has
//! died. It works on numbers only and touches no memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges with the number of their loans. A worker that lies can make them overlap.
#[derive(Debug, Default)]
pub(super) struct Loans {
    /// Start and end.
    lent: BTreeMap<(usize, usize), usize>,
    /// The length of all, counted once for each loan.
    total: usize,
    /// `true` if the worker has died: memory that is no longer lent is of no use to anybody.
    is_buried: bool,
}

impl Loans {
    pub(super) fn lend(&mut self, range: &Range<usize>) {
        *self.lent.entry((range.start, range.end)).or_default() += 1;
        self.total += range.len();
    }

    /// Ends one loan. Returns the parts of the range that are free for good: none as long as the
    /// worker lives.
    pub(super) fn end(&mut self, range: &Range<usize>) -> Vec<Range<usize>> {
        let key = (range.start, range.end);
        if let Some(count) = self.lent.get_mut(&key) {
            *count -= 1;
            self.total -= range.len();
            if *count == 0 {
                self.lent.remove(&key);
            }
        }
        if self.is_buried { self.gaps(range) } else { Vec::new() }
    }

    /// Returns the parts of `all` that are free for good, now that the worker has died.
    pub(super) fn bury(&mut self, all: &Range<usize>) -> Vec<Range<usize>> {
        self.is_buried = true;
        self.gaps(all)
    }

    /// Returns the length of all loans.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns the parts of a range that are not lent.
    fn gaps(&self, within: &Range<usize>) -> Vec<Range<usize>> {
        let (mut gaps, mut at) = (Vec::new(), within.start);
        for &(start, end) in self.lent.keys() {
            if start > at {
                gaps.push(at..start.min(within.end));
            }
            at = at.max(end);
            if at >= within.end {
                break;
            }
        }
        gaps.push(at..within.end);
        gaps.retain(|gap| gap.start < gap.end);
        gaps
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn gaps_are_what_nobody_has_lent(
            ranges in proptest::collection::vec((0..30_usize, 0..12_usize), 0..12),
            ended in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let mut loans = Loans::default();
            let mut model: Vec<_> =
                ranges.iter().map(|&(start, length)| start..start + length).collect();
            for range in &model {
                loans.lend(range);
            }
            for which in ended {
                if !model.is_empty() {
                    let range = model.swap_remove(which.index(model.len()));
                    prop_assert!(loans.end(&range).is_empty());
                }
            }
            let free = |gaps: Vec<Range<usize>>| gaps.into_iter().flatten().collect::<Vec<_>>();
            let lent = |model: &[Range<usize>], at| model.iter().any(|range| range.contains(&at));
            let expected: Vec<_> = (0..48).filter(|at| !lent(&model, *at)).collect();
            prop_assert_eq!(free(loans.bury(&(0..48))), expected);
            while let Some(range) = model.pop() {
                let expected: Vec<_> = range.clone().filter(|at| !lent(&model, *at)).collect();
                prop_assert_eq!(free(loans.end(&range)), expected);
            }
            prop_assert_eq!(loans.total(), 0);
        }
    }
}
