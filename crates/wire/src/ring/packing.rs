//! Packs bytes into the words of a ring.

use std::sync::atomic::Ordering;

use super::{COPY_BYTES, COPY_WORDS};
use crate::word::Word;

/// Returns the word with this index of those that the bytes fill.
#[inline]
pub(super) fn word_at(bytes: &[u8], index: usize) -> u64 {
    match bytes.get(index * 8..) {
        None | Some([]) => 0,
        Some(rest) => match rest.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        },
    }
}

/// Packs a message into words if it is short enough for the copy, and returns its length in bytes.
///
/// It fills the caller's words: a processor stalls when it moves what was just written in smaller
/// parts, and waits then for all stores before that to reach the other core.
#[inline]
pub(super) fn pack_short(
    head: &[u8],
    payload: &[u8],
    into: &mut [u64; COPY_WORDS - 1],
) -> Option<usize> {
    let length = head.len() + payload.len();
    if length > COPY_BYTES {
        return None;
    }
    let (head, rest) = head.as_chunks::<8>();
    if !rest.is_empty() {
        pack_bytes([head.as_flattened(), rest, payload], into);
        return Some(length);
    }
    let (of_head, of_payload) = into.split_at_mut(head.len());
    for (word, bytes) in of_head.iter_mut().zip(head) {
        *word = u64::from_le_bytes(*bytes);
    }
    let (chunks, rest) = payload.as_chunks::<8>();
    for (word, bytes) in of_payload.iter_mut().zip(chunks) {
        *word = u64::from_le_bytes(*bytes);
    }
    if let Some(word) = of_payload.get_mut(chunks.len()) {
        *word = word_at(rest, 0);
    }
    Some(length)
}

/// Packs parts of any length into words.
#[cold]
fn pack_bytes(parts: [&[u8]; 3], into: &mut [u64]) {
    for (index, byte) in parts.into_iter().flatten().enumerate() {
        into[index / 8] |= u64::from(*byte) << (index % 8 * 8);
    }
}

/// Packs bytes into words.
pub(super) struct WordWriter<'a, W> {
    words: &'a [W],
    position: u64,
    mask: usize,
    pending: u64,
    bits: u32,
}

impl<'a, W: Word> WordWriter<'a, W> {
    /// Writes from a position on into the data of a ring, whose number of words is a power of two.
    #[inline]
    pub(super) fn new(data: &'a [W], capacity: usize, position: u64) -> Self {
        Self { words: data, position, mask: capacity - 1, pending: 0, bits: 0 }
    }

    #[inline]
    pub(super) fn word(&mut self, word: u64) {
        let index = usize::try_from(self.position).unwrap_or(0) & self.mask;
        self.words[index].store(word, Ordering::Relaxed);
        self.position += 1;
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        if self.bits == 0 {
            for chunk in chunks {
                self.word(u64::from_le_bytes(*chunk));
            }
        } else {
            for chunk in chunks {
                let word = u64::from_le_bytes(*chunk);
                self.word(self.pending | word << self.bits);
                self.pending = word >> (64 - self.bits);
            }
        }
        for byte in rest {
            self.pending |= u64::from(*byte) << self.bits;
            self.bits += 8;
            if self.bits == 64 {
                self.word(self.pending);
                (self.pending, self.bits) = (0, 0);
            }
        }
    }

    /// Writes the last word, and returns the position behind it.
    #[inline]
    pub(super) fn finish(&mut self) -> u64 {
        if self.bits > 0 {
            self.word(self.pending);
        }
        self.position
    }
}
