//! The writing side of a ring.

use std::sync::atomic::Ordering;

use brigade_sys::fetch::fetch_for_writing;

use super::packing::{WordWriter, pack_short, word_at};
use super::{
    COPY, COPY_BYTES, COPY_END, COPY_WORDS, DATA, FIRST, HEAD, LAST, MORE, Region, SHORT_ITEM,
    TAIL, fragment_bytes, short_item,
};
use crate::fragments::Fragment;
use crate::link::LinkError;
use crate::word::Word;

/// Writes fragments into a ring. Each ring has one.
#[derive(Debug)]
pub struct Producer {
    region: Region,
    cursor: WriteCursor,
}

/// Words of a cache line.
const LINE: u64 = 8;

/// The result of `push`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pushed {
    /// The message is published up to this offset; all of it if that is its length.
    UpTo(usize),
    /// There is no room for more at present.
    Full,
}

impl Producer {
    /// Creates the producer of a new ring.
    pub fn new(region: Region) -> Self {
        let cursor = WriteCursor::new(region.capacity());
        Self { region, cursor }
    }

    /// Writes one fragment of the message `head` + `payload`, from `offset` on: all that is left,
    /// but at most a quarter of the ring.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] if the consumer's tail is out of range; nothing can be sent any
    /// more.
    #[inline]
    pub fn push(
        &mut self,
        head: &[u8],
        payload: &[u8],
        offset: usize,
    ) -> Result<Pushed, LinkError> {
        let pushed = self.cursor.push(self.region.words(), head, payload, offset);
        self.fetch_next_line();
        pushed
    }

    /// Fetches the next line, which the consumer has read a round ago, so that the next message
    /// need not wait for it.
    #[inline]
    fn fetch_next_line(&self) {
        let next = self.cursor.index_of(self.cursor.position + LINE);
        fetch_for_writing(&self.region.words()[DATA + next]);
    }

    /// Writes the message `head` + `payload` if it has a head of three or four words and is short
    /// enough for the copy. Returns `false` if not, or if there is no room at present.
    ///
    /// # Errors
    /// Like [`push`](Self::push).
    #[inline]
    pub fn push_short(&mut self, head: &[u64], payload: &[u8]) -> Result<bool, LinkError> {
        let length = size_of_val(head) + payload.len();
        if length > COPY_BYTES {
            return Ok(false);
        }
        let message = match *head {
            [a, b, c] => [a, b, c, word_at(payload, 0), word_at(payload, 1)],
            [a, b, c, d] => [a, b, c, d, word_at(payload, 0)],
            _ => return Ok(false),
        };
        let is_sent = self.cursor.push_short(self.region.words(), &message, length)?;
        self.fetch_next_line();
        Ok(is_sent)
    }

    /// Writes a short item. Returns `false` if there is no room at present.
    ///
    /// # Errors
    /// Like [`push`](Self::push).
    ///
    /// # Panics
    /// If the value has more than [`SHORT_ITEM`] bytes.
    #[inline]
    pub fn push_item(&mut self, index: u32, value: &[u8]) -> Result<bool, LinkError> {
        self.cursor.push_item(self.region.words(), index, value)
    }

    /// Returns an error if nothing can be sent any more.
    ///
    /// # Errors
    /// The error of the `push` that noticed the consumer's breach of the protocol.
    #[inline]
    pub fn check(&self) -> Result<(), LinkError> {
        if self.cursor.broken { Err(LinkError::Protocol(TAIL_OUT_OF_RANGE)) } else { Ok(()) }
    }

    /// Returns the region of the ring.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Sets whether there is more than there was room for, so that the consumer asks before it
    /// sleeps. Look for room once more after this call.
    pub fn has_more_waiting(&self, more: bool) {
        WriteCursor::set_more(self.region.words(), more);
    }

    /// Goes on after another producer of the same ring, which has ended.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] if the words of the ring are invalid.
    pub fn resume(&mut self) -> Result<(), LinkError> {
        self.cursor.resume(self.region.words())
    }

    /// Returns the number of words written since the beginning.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.cursor.position
    }

    /// Returns the number of them that the consumer has consumed.
    pub fn taken(&self) -> u64 {
        self.region.words()[TAIL].load(Ordering::Acquire)
    }

    /// Returns `true` if the consumer has consumed anything since there was no room.
    pub fn has_moved(&self) -> bool {
        self.cursor.has_moved(self.region.words())
    }
}

const TAIL_OUT_OF_RANGE: &str = "ring tail out of range";

/// The producer's half of the protocol, independent of the memory.
#[derive(Debug)]
pub(super) struct WriteCursor {
    capacity: usize,
    /// Written words since the beginning.
    position: u64,
    /// The consumer's tail when it was last read.
    tail: u64,
    /// `true` if the consumer broke the protocol.
    broken: bool,
}

impl WriteCursor {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, position: 0, tail: 0, broken: false }
    }

    pub(super) fn resume<W: Word>(&mut self, words: &[W]) -> Result<(), LinkError> {
        let head = words[HEAD].load(Ordering::Acquire);
        let tail = words[TAIL].load(Ordering::Acquire);
        self.broken |= head < self.position
            || tail < self.tail
            || head.checked_sub(tail).is_none_or(|used| used > self.capacity as u64);
        if self.broken {
            return Err(LinkError::Protocol(TAIL_OUT_OF_RANGE));
        }
        (self.position, self.tail) = (head, tail);
        Ok(())
    }

    #[inline]
    pub(super) fn push<W: Word>(
        &mut self,
        words: &[W],
        head: &[u8],
        payload: &[u8],
        offset: usize,
    ) -> Result<Pushed, LinkError> {
        let mut short = [0; COPY_WORDS - 1];
        if offset == 0
            && let Some(length) = pack_short(head, payload, &mut short)
        {
            let is_sent = self.push_short(words, &short, length)?;
            return Ok(if is_sent { Pushed::UpTo(length) } else { Pushed::Full });
        }
        let fragment = Fragment::new(head, payload, offset, fragment_bytes(self.capacity));
        let length = fragment.len();
        let needed = 1 + usize::from(fragment.total.is_some()) + length.div_ceil(8);
        if !self.has_room(words, needed)? {
            return Ok(Pushed::Full);
        }
        let first = if fragment.total.is_some() { FIRST } else { 0 };
        let last = if fragment.last { LAST } else { 0 };
        let mut writer = self.writer(words);
        writer.word(length as u64 | first | last);
        if let Some(total) = fragment.total {
            writer.word(total);
        }
        writer.bytes(fragment.head);
        writer.bytes(fragment.payload);
        self.position = writer.finish();
        words[HEAD].store(self.position, Ordering::Release);
        Ok(Pushed::UpTo(offset + length))
    }

    /// Writes a short message and its copy. Returns `false` if there is no room at present.
    #[inline]
    fn push_short<W: Word>(
        &mut self,
        words: &[W],
        message: &[u64; COPY_WORDS - 1],
        length: usize,
    ) -> Result<bool, LinkError> {
        let in_use = &message[..length.div_ceil(8)];
        let needed = 2 + in_use.len();
        if !self.has_room(words, needed)? {
            return Ok(false);
        }
        let frame = length as u64 | FIRST | LAST;
        let start = DATA + self.index_of(self.position);
        if let Some([first, second, room @ ..]) = words.get(start..start + needed) {
            first.store(frame, Ordering::Relaxed);
            second.store(length as u64, Ordering::Relaxed);
            store_all(room, in_use);
            self.position += needed as u64;
        } else {
            // It continues at the begin of the ring.
            let mut writer = self.writer(words);
            writer.word(frame);
            writer.word(length as u64);
            for word in in_use {
                writer.word(*word);
            }
            self.position = writer.finish();
        }
        // The consumer may be reading the last copy. If it sees anything of this one, it finds that
        // the end has changed. Pairs with the fence of `ReadCursor::copied`.
        words[COPY_END].store(0, Ordering::Relaxed);
        W::fence(Ordering::Release);
        words[COPY].store(frame, Ordering::Relaxed);
        store_all(&words[COPY + 1..COPY + COPY_WORDS], message);
        words[COPY_END].store(self.position, Ordering::Release);
        words[HEAD].store(self.position, Ordering::Release);
        Ok(true)
    }

    #[inline]
    pub(super) fn push_item<W: Word>(
        &mut self,
        words: &[W],
        index: u32,
        value: &[u8],
    ) -> Result<bool, LinkError> {
        assert!(value.len() <= SHORT_ITEM, "the value is too long for a short item");
        let needed = 1 + value.len().div_ceil(8);
        if !self.has_room(words, needed)? {
            return Ok(false);
        }
        let frame = value.len() as u64 | short_item(index);
        let start = DATA + self.index_of(self.position);
        if let Some([first, room @ ..]) = words.get(start..start + needed) {
            first.store(frame, Ordering::Relaxed);
            for (index, word) in room.iter().enumerate() {
                word.store(word_at(value, index), Ordering::Relaxed);
            }
            self.position += needed as u64;
        } else {
            // It continues at the begin of the ring.
            let mut writer = self.writer(words);
            writer.word(frame);
            writer.bytes(value);
            self.position = writer.finish();
        }
        words[HEAD].store(self.position, Ordering::Release);
        Ok(true)
    }

    /// Returns the index of a position in the ring's data.
    #[inline]
    fn index_of(&self, position: u64) -> usize {
        usize::try_from(position).unwrap_or(0) & (self.capacity - 1)
    }

    #[inline]
    fn writer<'a, W: Word>(&self, words: &'a [W]) -> WordWriter<'a, W> {
        WordWriter::new(&words[DATA..], self.capacity, self.position)
    }

    /// The fence lies between this store and the producer's next look at the tail. The consumer has
    /// a fence between moving the tail and its look at this word, so one of the two sees what the
    /// other has done.
    pub(super) fn set_more<W: Word>(words: &[W], more: bool) {
        words[MORE].store(u64::from(more), Ordering::Relaxed);
        // Pairs with the fence of `ReadCursor::more_is_waiting`.
        W::fence(Ordering::SeqCst);
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
            return Err(LinkError::Protocol(TAIL_OUT_OF_RANGE));
        }
        self.tail = tail;
        Ok(capacity - (self.position - self.tail) >= needed as u64)
    }
}

#[inline]
fn store_all<W: Word>(words: &[W], values: &[u64]) {
    for (word, value) in words.iter().zip(values) {
        word.store(*value, Ordering::Relaxed);
    }
}
