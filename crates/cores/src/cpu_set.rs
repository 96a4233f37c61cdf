//! Sets of cpus.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bits::Bits;
use crate::error::ParseCpuSetError;

/// A set of cpus, by the operating system's numbers, of any size.
///
/// It is written and parsed in the kernel's list format, which `taskset -c` and `numactl -C` use
/// too.
///
/// ```
/// use brigade_cores::CpuSet;
///
/// let set: CpuSet = "0-3,8".parse()?;
/// assert_eq!(set.len(), 5);
/// assert_eq!(CpuSet::from_mask("1,0000010f")?, "0-3,8,32".parse()?);
/// assert_eq!(set.to_string(), "0-3,8");
/// # Ok::<(), brigade_cores::ParseCpuSetError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet(Bits);

impl CpuSet {
    /// Parsing refuses cpu numbers from this one on, so that nonsense costs no memory. It is eight
    /// times the maximum that Linux can be built for.
    pub const PARSE_LIMIT: u32 = 1 << 16;

    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the kernel's mask format: hexadecimal words of 32 cpus, the highest first, separated
    /// by commas.
    ///
    /// Leading and trailing zero bytes and white space are ignored.
    pub fn from_mask(text: &str) -> Result<Self, ParseCpuSetError> {
        let text = trim(text);
        let words: Vec<&str> = text.split(',').collect();
        let mut bits = Bits::default();
        let mut position = 0;
        for word in words.iter().rev() {
            // Some tools write one long word. Only a single word leaves no doubt about the value of
            // its digits.
            if word.is_empty() || (words.len() > 1 && word.len() > DIGITS_PER_WORD) {
                return Err(ParseCpuSetError::Mask { text: excerpt(text) });
            }
            for (index, digit) in word.chars().rev().enumerate() {
                let Some(digit) = digit.to_digit(16) else {
                    return Err(ParseCpuSetError::Mask { text: excerpt(text) });
                };
                for bit in (0..4).filter(|bit| digit >> bit & 1 == 1) {
                    let cpu = position + 4 * index + bit;
                    if cpu >= Self::PARSE_LIMIT as usize {
                        return Err(ParseCpuSetError::TooLarge { text: excerpt(text) });
                    }
                    bits.insert(cpu);
                }
            }
            position += 4 * DIGITS_PER_WORD;
        }
        Ok(Self(bits))
    }

    /// Creates a set from words of 64 cpus, with cpu 0 in the lowest bit of the first word, as
    /// system calls use them.
    pub fn from_words(words: Vec<u64>) -> Self {
        Self(Bits::from_words(words))
    }

    /// Returns the words of 64 cpus each, with cpu 0 in the lowest bit of the first word. The last
    /// word is not 0.
    pub fn words(&self) -> &[u64] {
        self.0.words()
    }

    /// Returns the number of cpus.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(cpu as usize)
    }

    /// Adds a cpu. Returns `true` if it was not in the set. The set takes one bit for each number
    /// up to its greatest cpu.
    pub fn insert(&mut self, cpu: u32) -> bool {
        self.0.insert(cpu as usize)
    }

    /// Removes a cpu. Returns `true` if it was in the set.
    pub fn remove(&mut self, cpu: u32) -> bool {
        self.0.remove(cpu as usize)
    }

    /// Returns the lowest cpu.
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(number)
    }

    /// Iterates over the cpus in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(number)
    }

    /// Returns the maximal intervals of cpus in the set.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.0.runs().map(|run| number(run.start)..number(run.end))
    }

    /// Returns the cpus in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut bits = self.0.clone();
        bits.union_with(&other.0);
        Self(bits)
    }

    /// Returns the cpus in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut bits = self.0.clone();
        bits.intersect_with(&other.0);
        Self(bits)
    }

    /// Returns the cpus in this set but not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut bits = self.0.clone();
        bits.subtract(&other.0);
        Self(bits)
    }

    /// Returns `true` if all cpus of this set are in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Returns `true` if both sets have a cpu in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.intersects(&other.0)
    }
}

/// A word of the mask format has 32 bits.
const DIGITS_PER_WORD: usize = 8;

#[expect(clippy::cast_possible_truncation, reason = "only numbers of 32 bits are ever inserted")]
fn number(bit: usize) -> u32 {
    bit as u32
}

/// Trims input. Some kernels count the terminating zero byte as part of the file.
fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character == '\0' || character.is_whitespace())
}

/// Shortens input for error texts, which may quote a file of any size.
fn excerpt(text: &str) -> String {
    const MAX: usize = 60;
    let mut characters = text.chars();
    let mut excerpt: String = characters.by_ref().take(MAX).collect();
    if characters.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

impl FromStr for CpuSet {
    type Err = ParseCpuSetError;

    /// Parses the kernel's list format, such as `0-3,8`. Leading and trailing zero bytes and white
    /// space are ignored.
    fn from_str(text: &str) -> Result<Self, ParseCpuSetError> {
        let text = trim(text);
        let mut set = Self::new();
        if text.is_empty() {
            return Ok(set);
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (parse_number(first, text)?, parse_number(last, text)?);
            if last < first {
                return Err(ParseCpuSetError::List { text: excerpt(text) });
            }
            set.extend(first..=last);
        }
        Ok(set)
    }
}

fn parse_number(digits: &str, text: &str) -> Result<u32, ParseCpuSetError> {
    let digits = digits.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseCpuSetError::List { text: excerpt(text) });
    }
    digits
        .parse()
        .ok()
        .filter(|cpu| *cpu < CpuSet::PARSE_LIMIT)
        .ok_or_else(|| ParseCpuSetError::TooLarge { text: excerpt(text) })
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, run) in self.runs().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{}", run.start)?;
            if run.len() > 1 {
                write!(f, "-{}", run.end - 1)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        let mut set = Self::new();
        set.extend(cpus);
        set
    }
}

impl Extend<u32> for CpuSet {
    fn extend<I: IntoIterator<Item = u32>>(&mut self, cpus: I) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mask(set: &CpuSet) -> String {
        let words: Vec<String> = set
            .words()
            .iter()
            .rev()
            .flat_map(|word| [format!("{:08x}", word >> 32), format!("{:08x}", word & 0xffff_ffff)])
            .collect();
        if words.is_empty() { "0".to_owned() } else { words.join(",") }
    }

    proptest! {
        #[test]
        fn a_set_survives_writing_and_parsing(cpus in prop::collection::btree_set(0_u32..5_000, 0..200)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert!(set.iter().eq(cpus));
            prop_assert_eq!(&set.to_string().parse::<CpuSet>().unwrap(), &set);
            prop_assert_eq!(&CpuSet::from_mask(&mask(&set)).unwrap(), &set);
            let json = serde_json::to_string(&set).unwrap();
            prop_assert_eq!(serde_json::from_str::<CpuSet>(&json).unwrap(), set);
        }

        #[test]
        fn garbage_never_panics(text in "[-0-9a-fx, \0\n:é]{0,40}") {
            let _ = text.parse::<CpuSet>();
            let _ = CpuSet::from_mask(&text);
        }
    }

    #[test]
    fn formats_of_all_kernels_are_understood() {
        for (list, mask) in [
            ("0-31\n\0", "00000000,00000000,00000000,ffffffff\n\0"),
            ("0-1", "03\n"),
            ("\n", "0000,00000000"),
            ("0,2,4", "15"),
            ("64", "1,00000000,00000000"),
            ("64", "10000000000000000"),
        ] {
            let set: CpuSet = list.parse().unwrap();
            assert_eq!(CpuSet::from_mask(mask).unwrap(), set, "{mask}");
        }
    }

    #[test]
    fn malformed_sets_are_refused_with_the_reason() {
        for text in ["a", "1-", "-1", "3-1", "1,,2", "+1", "0x3"] {
            assert!(matches!(text.parse::<CpuSet>(), Err(ParseCpuSetError::List { .. })), "{text}");
        }
        for text in ["", "g", "1,,2", "123456789,1", "-1"] {
            assert!(
                matches!(CpuSet::from_mask(text), Err(ParseCpuSetError::Mask { .. })),
                "{text}"
            );
        }
        for text in ["0-4294967295", "99999999999999999999"] {
            assert!(
                matches!(text.parse::<CpuSet>(), Err(ParseCpuSetError::TooLarge { .. })),
                "{text}"
            );
        }
        let far = format!("1{}", ",00000000".repeat(3_000));
        assert!(matches!(CpuSet::from_mask(&far), Err(ParseCpuSetError::TooLarge { .. })));
    }
}
