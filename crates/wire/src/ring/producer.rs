//! The writing side.

use std::sync::atomic::Ordering;

use super::memory::Word;
use super::{DATA, FIRST, HEAD, LAST, MORE, Region, TAIL, piece_bytes};
use crate::link::LinkError;

/// Writes pieces into a ring. There is one for each ring.
#[derive(Debug)]
pub struct Producer {
    region: Region,
    cursor: WriteCursor,
}

/// What `push` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The message is published up to this offset; all of it when that is its length.
    UpTo(usize),
    /// There is no room for more now.
    Full,
}

impl Producer {
    /// The producer of a new ring.
    pub fn new(region: Region) -> Self {
        let cursor = WriteCursor::new(region.capacity());
        Self { region, cursor }
    }

    /// Writes a piece of the message that is `head` and `payload` together, from `offset` on: all that is left, but at most
    /// a quarter of the ring.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] when the consumer's tail cannot be; nothing can be sent any more.
    #[inline]
    pub fn push(
        &mut self,
        head: &[u8],
        payload: &[u8],
        offset: usize,
    ) -> Result<Pushed, LinkError> {
        self.cursor.push(self.region.words(), head, payload, offset)
    }

    /// Whether anything can be sent.
    ///
    /// # Errors
    /// The error of the `push` that found out that the consumer broke the protocol.
    #[inline]
    pub fn check(&self) -> Result<(), LinkError> {
        if self.cursor.broken { Err(LinkError::Protocol(IMPOSSIBLE_TAIL)) } else { Ok(()) }
    }

    /// Where the ring lies.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Tells the consumer whether there is more than there was room for, so that it asks before it sleeps. Look for room
    /// once more after this.
    pub fn has_more_waiting(&self, more: bool) {
        WriteCursor::set_more(self.region.words(), more);
    }

    /// Whether the consumer has consumed anything since there was no room.
    pub fn has_moved(&self) -> bool {
        self.cursor.has_moved(self.region.words())
    }
}

const IMPOSSIBLE_TAIL: &str = "a ring's tail that cannot be";

/// The producer's half of the protocol, apart from where the words lie.
#[derive(Debug)]
pub(super) struct WriteCursor {
    capacity: usize,
    /// What is written, in words since the beginning.
    position: u64,
    /// The consumer's tail when it was last read.
    tail: u64,
    /// The consumer broke the protocol.
    broken: bool,
}

impl WriteCursor {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, position: 0, tail: 0, broken: false }
    }

    #[inline]
    pub(super) fn push<W: Word>(
        &mut self,
        words: &[W],
        head: &[u8],
        payload: &[u8],
        offset: usize,
    ) -> Result<Pushed, LinkError> {
        let total = head.len() + payload.len();
        let length = (total - offset).min(piece_bytes(self.capacity));
        let first = offset == 0;
        let needed = 1 + usize::from(first) + length.div_ceil(8);
        if !self.has_room(words, needed)? {
            return Ok(Pushed::Full);
        }
        let last = offset + length == total;
        let flags = if first { FIRST } else { 0 } | if last { LAST } else { 0 };
        let mut writer = Writer {
            words: &words[DATA..],
            position: self.position,
            mask: self.capacity - 1,
            pending: 0,
            bits: 0,
        };
        writer.word(length as u64 | flags);
        if first {
            writer.word(total as u64);
        }
        let from_head = head.get(offset..).unwrap_or_default();
        let from_head = &from_head[..from_head.len().min(length)];
        let start = (offset + from_head.len()).saturating_sub(head.len());
        writer.bytes(from_head);
        writer.bytes(&payload[start..start + length - from_head.len()]);
        self.position = writer.finish();
        words[HEAD].store(self.position, Ordering::Release);
        Ok(Pushed::UpTo(offset + length))
    }

    /// The fence lies between this store and the producer's next look at the tail. The consumer has one between moving
    /// the tail and its look at this word, so one of the two sees what the other has done.
    pub(super) fn set_more<W: Word>(words: &[W], more: bool) {
        words[MORE].store(u64::from(more), Ordering::Relaxed);
        W::fence();
    }

    pub(super) fn has_moved<W: Word>(&self, words: &[W]) -> bool {
        words[TAIL].load(Ordering::Acquire) != self.tail
    }

    #[inline]
    fn has_room<W: Word>(&mut self, words: &[W], needed: usize) -> Result<bool, LinkError> {
        let capacity = self.capacity as u64;
        if !self.broken && capacity - (self.position - self.tail) >= needed as u64 {
            return Ok(true);
        }
        let tail = words[TAIL].load(Ordering::Acquire);
        self.broken |= tail < self.tail || tail > self.position;
        if self.broken {
            return Err(LinkError::Protocol(IMPOSSIBLE_TAIL));
        }
        self.tail = tail;
        Ok(capacity - (self.position - self.tail) >= needed as u64)
    }
}

/// Packs bytes into words.
struct Writer<'a, W> {
    words: &'a [W],
    position: u64,
    mask: usize,
    pending: u64,
    bits: u32,
}

impl<W: Word> Writer<'_, W> {
    #[inline]
    fn word(&mut self, word: u64) {
        let index = usize::try_from(self.position).unwrap_or(0) & self.mask;
        self.words[index].store(word, Ordering::Relaxed);
        self.position += 1;
    }

    fn bytes(&mut self, bytes: &[u8]) {
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

    fn finish(mut self) -> u64 {
        if self.bits > 0 {
            self.word(self.pending);
        }
        self.position
    }
}
