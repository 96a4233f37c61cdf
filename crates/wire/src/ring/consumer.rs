//! The reading side of a ring.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    COPY, COPY_BYTES, COPY_END, COPY_WORDS, DATA, FIRST, HEAD, LAST, LENGTH, MORE, Region,
    SHORT_ITEM, TAIL, fragment_bytes, short_item,
};
use crate::fragments::Assembly;
use crate::items;
use crate::link::LinkError;
use crate::word::Word;

/// Reads messages from a ring and assembles them from fragments. Each ring has one.
#[derive(Debug)]
pub struct Consumer {
    region: Region,
    cursor: ReadCursor,
}

/// Tells whether a ring has something to read, on any thread of the consumer's process.
#[derive(Debug)]
pub struct Watch {
    region: Region,
    mask: usize,
}

impl Watch {
    /// Returns `true` if something is published and not consumed.
    #[inline]
    pub fn has_more(&self) -> bool {
        let words = self.region.words();
        let position = words[TAIL].load(Ordering::Relaxed);
        look(words, self.mask, position)
    }
}

/// Returns `true` if something is published behind `position`.
///
/// Unless the last message had a copy, this makes the processor fetch the next one together with
/// the head. Otherwise it would fetch it after the head, and each takes as long as the way from one
/// core to another.
#[inline]
fn look(words: &[AtomicU64], mask: usize, position: u64) -> bool {
    let head = words[HEAD].load(Ordering::Acquire);
    if head == position && words[COPY_END].load(Ordering::Relaxed) != head {
        let index = usize::try_from(position).unwrap_or(0);
        words[DATA + (index & mask)].load(Ordering::Relaxed);
        words[DATA + (index.wrapping_add(4) & mask)].load(Ordering::Relaxed);
    }
    head != position
}

impl Consumer {
    /// Returns a watch over the ring.
    pub fn watch(&self) -> Watch {
        Watch { region: self.region.clone(), mask: self.cursor.capacity - 1 }
    }

    /// Like [`has_more`](Self::has_more), for a side that looks again and again.
    #[inline]
    pub fn has_more_soon(&self) -> bool {
        look(self.region.words(), self.cursor.capacity - 1, self.cursor.position)
    }

    /// Goes on after another consumer of the same ring, which has ended between two messages.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] if the words of the ring are invalid.
    pub fn resume(&mut self) -> Result<(), LinkError> {
        self.cursor.resume(self.region.words())
    }

    /// Creates the consumer of a new ring, for messages of at most `limit` bytes.
    pub fn new(region: Region, limit: usize) -> Self {
        let cursor = ReadCursor::new(region.capacity(), limit);
        Self { region, cursor }
    }

    /// Returns `true` if something is published and not consumed.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.cursor.has_more(self.region.words())
    }

    /// Returns `true` if the producer waits for room.
    pub fn more_is_waiting(&self) -> bool {
        ReadCursor::more_is_waiting(self.region.words())
    }

    /// Returns `true` if a message has begun to arrive and is not whole.
    #[inline]
    pub fn is_in_the_middle(&self) -> bool {
        self.cursor.is_in_the_middle()
    }

    /// Returns the message that `advance` has found.
    #[inline]
    pub fn message(&self) -> &[u8] {
        self.cursor.message()
    }

    /// Returns the approximate number of messages behind the last one, as if they had its size.
    #[inline]
    pub fn behind(&self) -> u64 {
        self.cursor.behind(self.region.words())
    }

    /// Returns the number of words taken since the beginning.
    #[inline]
    pub fn taken(&self) -> u64 {
        self.cursor.position
    }

    /// Frees the memory of a large message that has been used.
    #[inline]
    pub fn release(&mut self) {
        self.cursor.assembly.release();
    }

    /// Takes the next message if all of it has arrived; [`message`](Self::message) returns it until
    /// the next call.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] if the published words are invalid; nothing can be read any more.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        self.cursor.advance(self.region.words())
    }

    /// Returns `true` if something is published and not consumed, and remembers how much that is
    /// until it is consumed.
    ///
    /// # Errors
    /// Like [`advance`](Self::advance).
    #[inline]
    pub fn find_published(&mut self) -> Result<bool, LinkError> {
        self.cursor.find_published(self.region.words())
    }

    /// Takes the short items that are next, from the one with index `first` on, but at most `most`,
    /// and none beyond what [`find_published`](Self::find_published) has found. Appends their
    /// values to `values` as [items](crate::items), and returns their number.
    ///
    /// If it returns 0 after something was found, that is not a short item, or not the right one;
    /// [`advance`](Self::advance) takes or refuses it.
    pub fn take_items(&mut self, first: u32, most: u32, values: &mut Vec<u8>) -> u32 {
        self.cursor.take_items(self.region.words(), first, most, values)
    }
}

/// The consumer's half of the protocol, independent of the memory.
#[derive(Debug)]
pub(super) struct ReadCursor {
    capacity: usize,
    /// Consumed words since the beginning.
    position: u64,
    /// The producer's head when it was last read.
    head: u64,
    /// Length of the last fragment in words.
    last: u64,
    assembly: Assembly,
    /// The producer's breach of the protocol, if there was one.
    broken: Option<&'static str>,
}

impl ReadCursor {
    pub(super) fn new(capacity: usize, limit: usize) -> Self {
        Self {
            capacity,
            position: 0,
            head: 0,
            last: 1,
            assembly: Assembly::new(limit),
            broken: None,
        }
    }

    pub(super) fn resume<W: Word>(&mut self, words: &[W]) -> Result<(), LinkError> {
        let tail = words[TAIL].load(Ordering::Acquire);
        if tail < self.position {
            return Err(self.breaks("ring tail out of range"));
        }
        (self.position, self.head) = (tail, tail);
        self.find_published(words).map(|_| ())
    }

    #[inline]
    pub(super) fn has_more<W: Word>(&self, words: &[W]) -> bool {
        words[HEAD].load(Ordering::Acquire) != self.position
    }

    #[inline]
    fn behind<W: Word>(&self, words: &[W]) -> u64 {
        words[HEAD].load(Ordering::Relaxed).saturating_sub(self.position) / self.last
    }

    /// Returns `true` if the producer has more. Call it after the tail was moved.
    pub(super) fn more_is_waiting<W: Word>(words: &[W]) -> bool {
        // Pairs with the fence of `WriteCursor::set_more`.
        W::fence(Ordering::SeqCst);
        words[MORE].load(Ordering::Relaxed) != 0
    }

    #[inline]
    pub(super) fn is_in_the_middle(&self) -> bool {
        self.assembly.is_in_the_middle()
    }

    #[inline]
    pub(super) fn message(&self) -> &[u8] {
        self.assembly.message()
    }

    #[inline]
    pub(super) fn advance<W: Word>(&mut self, words: &[W]) -> Result<bool, LinkError> {
        while self.find_published(words)? {
            if self.take_fragment(words)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[inline]
    pub(super) fn find_published<W: Word>(&mut self, words: &[W]) -> Result<bool, LinkError> {
        if self.position == self.head {
            if let Some(problem) = self.broken {
                return Err(LinkError::Protocol(problem));
            }
            let head = words[HEAD].load(Ordering::Acquire);
            if head < self.head || head - self.position > self.capacity as u64 {
                return Err(self.breaks("ring head out of range"));
            }
            self.head = head;
        }
        Ok(self.head != self.position)
    }

    pub(super) fn take_items<W: Word>(
        &mut self,
        words: &[W],
        first: u32,
        most: u32,
        values: &mut Vec<u8>,
    ) -> u32 {
        if self.is_in_the_middle() {
            return 0;
        }
        let (mut taken, mut position) = (0, self.position);
        while taken < most && position != self.head {
            let word = |ahead| self.word_at(words, position + ahead);
            let frame = word(0);
            let length = frame & LENGTH;
            let needed = 1 + length.div_ceil(8);
            let is_next = frame & !LENGTH == short_item(first.wrapping_add(taken));
            if !is_next || length > SHORT_ITEM as u64 || needed > self.head - position {
                break;
            }
            items::push_words(values, usize::try_from(length).unwrap_or(0), |index| {
                word(1 + index as u64)
            });
            position += needed;
            taken += 1;
        }
        if taken > 0 {
            self.position = position;
            words[TAIL].store(position, Ordering::Release);
        }
        taken
    }

    /// Stops all further reading.
    #[cold]
    fn breaks(&mut self, problem: &'static str) -> LinkError {
        self.head = self.position;
        LinkError::Protocol(self.broken.insert(problem))
    }

    /// Takes one fragment; returns `true` if it completes a message.
    #[inline]
    fn take_fragment<W: Word>(&mut self, words: &[W]) -> Result<bool, LinkError> {
        let published = self.head - self.position;
        if let Some((length, copy)) = self.copied(words, published) {
            return self.take_copy(words, length, copy);
        }
        let frame = self.word(words, 0);
        let (first, last) = (frame & FIRST != 0, frame & LAST != 0);
        let length = frame & LENGTH;
        let needed = 1 + u64::from(first) + length.div_ceil(8);
        if needed > published || frame & !(FIRST | LAST | LENGTH) != 0 {
            return Err(self.breaks("fragment longer than the published words"));
        }
        // Fits: it is at most the ring's size.
        let length = usize::try_from(length).unwrap_or(0);
        let total = first.then(|| self.word(words, 1));
        let room = match self.assembly.reserve(total, last, length) {
            Ok(room) => room,
            Err(problem) => return Err(self.breaks(problem)),
        };
        // This bounds the number of fragments by the message's length, so reading a message ends.
        if !last && length != fragment_bytes(self.capacity) {
            return Err(self.breaks("fragment too short"));
        }
        copy(&words[DATA..], self.capacity - 1, self.position + 1 + u64::from(first), room);
        self.position += needed;
        self.last = needed;
        words[TAIL].store(self.position, Ordering::Release);
        Ok(last)
    }

    /// Returns the length and the words of the copy, if it is the next message.
    #[inline]
    fn copied<W: Word>(
        &self,
        words: &[W],
        published: u64,
    ) -> Option<(usize, [u64; COPY_WORDS - 1])> {
        if published > 1 + COPY_WORDS as u64 || words[COPY_END].load(Ordering::Acquire) != self.head
        {
            return None;
        }
        let frame = words[COPY].load(Ordering::Relaxed);
        let copy = std::array::from_fn(|index| words[COPY + 1 + index].load(Ordering::Relaxed));
        // The producer may have written another one meanwhile. Pairs with the fence of
        // `WriteCursor::push`.
        W::fence(Ordering::Acquire);
        let is_whole = words[COPY_END].load(Ordering::Relaxed) == self.head;
        let length = usize::try_from(frame & LENGTH).unwrap_or(usize::MAX);
        let is_next = frame & !LENGTH == FIRST | LAST
            && length <= COPY_BYTES
            && 2 + length.div_ceil(8) as u64 == published;
        (is_whole && is_next).then_some((length, copy))
    }

    #[inline]
    fn take_copy<W: Word>(
        &mut self,
        words: &[W],
        length: usize,
        copy: [u64; COPY_WORDS - 1],
    ) -> Result<bool, LinkError> {
        if let Err(problem) = self.assembly.take_words(copy, length) {
            return Err(self.breaks(problem));
        }
        W::pass_over(&words[DATA..], self.position, self.head);
        self.last = self.head - self.position;
        self.position = self.head;
        words[TAIL].store(self.position, Ordering::Release);
        Ok(true)
    }

    #[inline]
    fn word<W: Word>(&self, words: &[W], ahead: u64) -> u64 {
        self.word_at(words, self.position + ahead)
    }

    #[inline]
    fn word_at<W: Word>(&self, words: &[W], position: u64) -> u64 {
        let index = usize::try_from(position).unwrap_or(0);
        words[DATA + (index & (self.capacity - 1))].load(Ordering::Relaxed)
    }
}

/// Fills `room` with the bytes from a position on.
#[inline]
fn copy<W: Word>(words: &[W], mask: usize, from: u64, room: &mut [u8]) {
    let mut index = usize::try_from(from).unwrap_or(0);
    let (chunks, rest) = room.as_chunks_mut::<8>();
    for chunk in chunks {
        *chunk = words[index & mask].load(Ordering::Relaxed).to_le_bytes();
        index += 1;
    }
    if !rest.is_empty() {
        let word = words[index & mask].load(Ordering::Relaxed).to_le_bytes();
        rest.copy_from_slice(&word[..rest.len()]);
    }
}
