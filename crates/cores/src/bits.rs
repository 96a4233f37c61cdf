//! A growable bit set of small numbers: cpu ids in a [`CpuSet`](crate::CpuSet), positions in the
//! allocator.

use std::ops::Range;

const WORD: usize = u64::BITS as usize;

/// The last word is never 0, so that equal sets have equal words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        let mut bits = Self { words };
        bits.trim();
        bits
    }

    /// Returns the set of the numbers below `end`.
    pub(crate) fn below(end: usize) -> Self {
        let mut words = vec![u64::MAX; end / WORD];
        if !end.is_multiple_of(WORD) {
            words.push((1 << (end % WORD)) - 1);
        }
        Self { words }
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a number. Returns `true` if it was not in the set.
    pub(crate) fn insert(&mut self, bit: usize) -> bool {
        let word = bit / WORD;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let mask = 1 << (bit % WORD);
        let new = self.words[word] & mask == 0;
        self.words[word] |= mask;
        new
    }

    /// Removes a number. Returns `true` if it was in the set.
    pub(crate) fn remove(&mut self, bit: usize) -> bool {
        let there = self.contains(bit);
        if there {
            self.words[bit / WORD] &= !(1 << (bit % WORD));
            self.trim();
        }
        there
    }

    pub(crate) fn contains(&self, bit: usize) -> bool {
        self.words.get(bit / WORD).is_some_and(|word| word >> (bit % WORD) & 1 == 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(crate) fn first(&self) -> Option<usize> {
        let word = self.words.iter().position(|word| *word != 0)?;
        Some(word * WORD + self.words[word].trailing_zeros() as usize)
    }

    pub(crate) fn union_with(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word |= theirs;
        }
    }

    pub(crate) fn intersect_with(&mut self, other: &Self) {
        self.words.truncate(other.words.len());
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= theirs;
        }
        self.trim();
    }

    pub(crate) fn subtract(&mut self, other: &Self) {
        for (word, theirs) in self.words.iter_mut().zip(&other.words) {
            *word &= !theirs;
        }
        self.trim();
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.words.len() <= other.words.len()
            && self.words.iter().zip(&other.words).all(|(word, theirs)| word & !theirs == 0)
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(word, theirs)| word & theirs != 0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(index * WORD + bit)
            })
        })
    }

    /// Returns the maximal intervals of numbers in the set, in ascending order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut bits = self.iter().peekable();
        std::iter::from_fn(move || {
            let start = bits.next()?;
            let mut end = start + 1;
            while bits.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(start..end)
        })
    }

    fn trim(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Self {
        let mut bits = Self::default();
        bits.extend(numbers);
        bits
    }
}

impl Extend<usize> for Bits {
    fn extend<I: IntoIterator<Item = usize>>(&mut self, numbers: I) {
        for number in numbers {
            self.insert(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    impl Bits {
        /// Returns the greatest number plus one; 0 for the empty set.
        pub(crate) fn end(&self) -> usize {
            self.words.len() * WORD
                - self.words.last().map_or(0, |word| word.leading_zeros() as usize)
        }
    }

    fn numbers() -> impl Strategy<Value = BTreeSet<usize>> {
        prop_oneof![
            prop::collection::btree_set(0_usize..300, 0..80),
            // Long runs, so that they cross word boundaries.
            (0_usize..200, 0_usize..200)
                .prop_map(|(start, length)| (start..start + length).collect()),
        ]
    }

    fn bits(numbers: &BTreeSet<usize>) -> Bits {
        numbers.iter().copied().collect()
    }

    proptest! {
        #[test]
        fn bits_behave_like_a_set(a in numbers(), b in numbers(), removed in 0_usize..300) {
            let (x, y) = (bits(&a), bits(&b));
            let mut union = x.clone();
            union.union_with(&y);
            prop_assert_eq!(union, bits(&a.union(&b).copied().collect()));
            let mut both = x.clone();
            both.intersect_with(&y);
            prop_assert_eq!(!both.is_empty(), x.intersects(&y));
            prop_assert_eq!(both, bits(&a.intersection(&b).copied().collect()));
            let mut rest = x.clone();
            rest.subtract(&y);
            prop_assert_eq!(rest, bits(&a.difference(&b).copied().collect()));
            prop_assert_eq!(x.is_subset(&y), a.is_subset(&b));
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x.first(), a.first().copied());
            prop_assert_eq!(x.end(), a.last().map_or(0, |last| last + 1));
            prop_assert!(x.iter().eq(a.iter().copied()));
            let (mut x, mut a) = (x, a);
            prop_assert_eq!(x.remove(removed), a.remove(&removed));
            prop_assert_eq!(x.insert(removed), a.insert(removed));
            prop_assert_eq!(x, bits(&a));
        }

        #[test]
        fn runs_are_maximal_and_cover_the_set(a in numbers()) {
            let runs: Vec<_> = bits(&a).runs().collect();
            prop_assert!(runs.iter().cloned().flatten().eq(a.iter().copied()));
            for pair in runs.windows(2) {
                prop_assert!(pair[0].end < pair[1].start);
            }
        }
    }

    #[test]
    fn numbers_below_an_end_are_one_run() {
        for end in [0, 1, 63, 64, 65, 128] {
            assert_eq!(Bits::below(end), (0..end).collect());
        }
    }
}
