//! Writes and reads the words of a message's head.

use std::time::Duration;

use super::Chunk;
use crate::error::MessageError;
use crate::location::Location;

/// Upper bound on the length of a function's name, exclusive.
pub(super) const NAME_LIMIT: usize = 64 * 1024;

#[inline]
pub(super) fn push(head: &mut Vec<u8>, word: u64) {
    head.extend_from_slice(&word.to_le_bytes());
}

#[inline]
pub(super) fn first_word(kind: u8, flags: u8, ring_index: u16, number: u32) -> u64 {
    u64::from(kind) | u64::from(flags) << 8 | u64::from(ring_index) << 16 | u64::from(number) << 32
}

#[inline]
pub(super) fn split_first_word(word: u64) -> (u8, u8, u16, u32) {
    let [kind, flags, ring_index @ .., a, b, c, d] = word.to_le_bytes();
    (kind, flags, u16::from_le_bytes(ring_index), u32::from_le_bytes([a, b, c, d]))
}

pub(super) fn push_location(head: &mut Vec<u8>, location: Location) {
    push(head, location.offset);
    push(head, location.length);
}

pub(super) fn limit_word(limit: Option<Duration>) -> u64 {
    let nanos = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    nanos.unwrap_or(u64::MAX)
}

pub(super) fn split_limit_word(word: u64) -> Option<Duration> {
    (word != u64::MAX).then(|| Duration::from_nanos(word))
}

/// A chunk without a budget.
const UNLIMITED: u32 = u32::MAX;

pub(super) fn chunk_word(chunk: &Chunk) -> u64 {
    let budget = u32::try_from(chunk.budget.as_micros()).unwrap_or(UNLIMITED);
    u64::from(chunk.items) | u64::from(budget) << 32
}

pub(super) fn split_chunk_word(word: u64) -> Chunk {
    let [a, b, c, d, budget @ ..] = word.to_le_bytes();
    let budget = match u32::from_le_bytes(budget) {
        UNLIMITED => Duration::MAX,
        micros => Duration::from_micros(micros.into()),
    };
    Chunk { items: u32::from_le_bytes([a, b, c, d]), budget }
}

/// Takes values from the front of a slice and returns an error at its end.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn word(&mut self) -> Result<u64, MessageError> {
        let (word, rest) = self.0.split_first_chunk().ok_or(CUT_OFF)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// Returns an error if something is left.
    pub(super) fn end(&self, problem: &'static str) -> Result<(), MessageError> {
        if self.0.is_empty() { Ok(()) } else { Err(MessageError::Decode(problem)) }
    }

    pub(super) fn location(&mut self) -> Result<Location, MessageError> {
        Ok(Location { offset: self.word()?, length: self.word()? })
    }

    pub(super) fn name(&mut self, length: u64) -> Result<&'a str, MessageError> {
        let length = usize::try_from(length).ok().filter(|length| *length < NAME_LIMIT);
        let (name, rest) =
            length.and_then(|length| self.0.split_at_checked(length)).ok_or(CUT_OFF)?;
        self.0 = rest;
        std::str::from_utf8(name).map_err(|_| MessageError::Decode("name is not UTF-8"))
    }
}

const CUT_OFF: MessageError = MessageError::Decode("truncated message");
