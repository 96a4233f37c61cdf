//! Harmless tasks. Argument and value are computed from a number, so that each byte of both can be
//! checked.

use brigade_testkit::Random;

use super::notes::{self, Kind};

/// Bytes for the number and the size of the value.
const HEAD: usize = 16;

/// An argument for [`answers`], and the expected value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Innocent {
    pub(super) number: u64,
    argument: usize,
    result: usize,
}

impl Innocent {
    /// Creates a task. If `large`, some payloads are large enough for arenas.
    pub(super) fn new(random: &mut Random, number: u64, large: bool) -> Self {
        Self { number, argument: size(random, large), result: size(random, large) }
    }

    pub(super) fn argument(self) -> Vec<u8> {
        let mut argument = self.number.to_le_bytes().to_vec();
        argument.extend((self.result as u64).to_le_bytes());
        argument.extend(bytes(self.number, self.argument));
        argument
    }

    pub(super) fn is_right(self, result: &[u8]) -> bool {
        result == bytes(!self.number, self.result)
    }
}

/// The task function: checks its argument and computes the value, which is empty for a garbled
/// argument.
pub(super) fn answers(argument: Vec<u8>) -> Vec<u8> {
    let words = argument.as_chunks().0;
    let word = |index: usize| words.get(index).map_or(u64::MAX, |word| u64::from_le_bytes(*word));
    let (number, size) = (word(0), word(1));
    notes::note(Kind::Innocent, number);
    let rest = argument.get(HEAD..).unwrap_or_default();
    if size > MAX || rest != bytes(number, rest.len()) {
        return Vec::new();
    }
    bytes(!number, usize::try_from(size).unwrap_or_default())
}

const MAX: u64 = 1 << 20;

fn size(random: &mut Random, large: bool) -> usize {
    let most = match random.within(0..100) {
        0..6 if large => MAX,
        6..30 if large => 64 << 10,
        _ => 1000,
    };
    usize::try_from(random.within(1..most + 1)).expect("a size")
}

fn bytes(number: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(number);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend(random.number().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
