//! The writing side.

use std::sync::atomic::Ordering;

use super::{DATA, FIRST, HEAD, LAST, MORE, Region, TAIL};
use crate::link::LinkError;

/// Writes pieces into a ring. There is one for each ring.
#[derive(Debug)]
pub struct Producer {
    region: Region,
    capacity: usize,
    /// What is written, in words since the beginning.
    position: u64,
    /// The consumer's tail when it was last read.
    tail: u64,
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
        let capacity = region.capacity();
        Self { region, capacity, position: 0, tail: 0 }
    }

    /// Writes a piece of the message that is `head` and `payload` together, from `offset` on: all that is left, but at most
    /// a quarter of the ring.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] when the consumer's tail cannot be.
    pub fn push(
        &mut self,
        head: &[u8],
        payload: &[u8],
        offset: usize,
    ) -> Result<Pushed, LinkError> {
        let total = head.len() + payload.len();
        let most = self.capacity / 4 * 8 - 16;
        let length = (total - offset).min(most);
        let first = offset == 0;
        let needed = 1 + usize::from(first) + length.div_ceil(8);
        if !self.has_room(needed)? {
            return Ok(Pushed::Full);
        }
        let last = offset + length == total;
        let flags = if first { FIRST } else { 0 } | if last { LAST } else { 0 };
        let mut writer = Writer {
            words: &self.region.words()[DATA..],
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
        self.region.words()[HEAD].store(self.position, Ordering::Release);
        Ok(Pushed::UpTo(offset + length))
    }

    /// Where the ring lies.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Tells the consumer whether there is more than there was room for, so that it asks before it sleeps.
    pub fn has_more_waiting(&self, more: bool) {
        self.region.words()[MORE].store(u64::from(more), Ordering::SeqCst);
    }

    /// Whether the consumer has consumed anything since there was no room.
    pub fn has_moved(&self) -> bool {
        self.region.words()[TAIL].load(Ordering::Acquire) != self.tail
    }

    fn has_room(&mut self, needed: usize) -> Result<bool, LinkError> {
        let capacity = self.capacity as u64;
        if capacity - (self.position - self.tail) >= needed as u64 {
            return Ok(true);
        }
        let tail = self.region.words()[TAIL].load(Ordering::Acquire);
        if tail < self.tail || tail > self.position {
            return Err(LinkError::Protocol("a ring's tail that cannot be"));
        }
        self.tail = tail;
        Ok(capacity - (self.position - self.tail) >= needed as u64)
    }
}

/// Packs bytes into words.
struct Writer<'a> {
    words: &'a [std::sync::atomic::AtomicU64],
    position: u64,
    mask: usize,
    pending: u64,
    bits: u32,
}

impl Writer<'_> {
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
