//! The reading side.

use std::sync::atomic::Ordering;

use super::memory::Word;
use super::{DATA, FIRST, HEAD, LAST, LENGTH, MORE, Region, TAIL, piece_bytes};
use crate::link::LinkError;

/// Reads messages out of a ring and puts pieces together. There is one for each ring.
#[derive(Debug)]
pub struct Consumer {
    region: Region,
    cursor: ReadCursor,
}

impl Consumer {
    /// The consumer of a new ring, for messages of at most `limit` bytes.
    pub fn new(region: Region, limit: usize) -> Self {
        let cursor = ReadCursor::new(region.capacity(), limit);
        Self { region, cursor }
    }

    /// Whether something was published that is not consumed.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.cursor.has_more(self.region.words())
    }

    /// Whether the producer waits for room.
    pub fn more_is_waiting(&self) -> bool {
        ReadCursor::more_is_waiting(self.region.words())
    }

    /// Whether a message has begun to arrive and is not whole.
    pub fn is_in_the_middle(&self) -> bool {
        self.cursor.is_in_the_middle()
    }

    /// The message that `advance` has found.
    pub fn message(&self) -> &[u8] {
        self.cursor.message()
    }

    /// Takes the next message, if it is there whole; [`message`](Self::message) has it until the next call.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] when what is published cannot be; nothing can be read any more.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        self.cursor.advance(self.region.words())
    }
}

/// The consumer's half of the protocol, apart from where the words lie.
#[derive(Debug)]
pub(super) struct ReadCursor {
    capacity: usize,
    /// What is consumed, in words since the beginning.
    position: u64,
    /// The producer's head when it was last read.
    head: u64,
    /// The most bytes of a message.
    limit: usize,
    /// The length of the message whose pieces are coming.
    total: Option<usize>,
    message: Vec<u8>,
    /// How the producer broke the protocol.
    broken: Option<&'static str>,
}

/// A message's memory is kept for the next one, unless it has grown beyond this.
const KEPT: usize = 1 << 20;

impl ReadCursor {
    pub(super) fn new(capacity: usize, limit: usize) -> Self {
        let (message, broken) = (Vec::new(), None);
        Self { capacity, position: 0, head: 0, limit, total: None, message, broken }
    }

    #[inline]
    pub(super) fn has_more<W: Word>(&self, words: &[W]) -> bool {
        words[HEAD].load(Ordering::Acquire) != self.position
    }

    /// With a fence after moving the tail: see `WriteCursor::set_more`.
    pub(super) fn more_is_waiting<W: Word>(words: &[W]) -> bool {
        W::fence();
        words[MORE].load(Ordering::Relaxed) != 0
    }

    pub(super) fn is_in_the_middle(&self) -> bool {
        self.total.is_some()
    }

    pub(super) fn message(&self) -> &[u8] {
        &self.message
    }

    #[inline]
    pub(super) fn advance<W: Word>(&mut self, words: &[W]) -> Result<bool, LinkError> {
        loop {
            if self.position == self.head {
                if let Some(problem) = self.broken {
                    return Err(LinkError::Protocol(problem));
                }
                let head = words[HEAD].load(Ordering::Acquire);
                if head < self.head || head - self.position > self.capacity as u64 {
                    return Err(self.breaks("a ring's head that cannot be"));
                }
                if head == self.position {
                    return Ok(false);
                }
                self.head = head;
            }
            if self.take_piece(words)? {
                return Ok(true);
            }
        }
    }

    /// Nothing is read any more.
    #[cold]
    fn breaks(&mut self, problem: &'static str) -> LinkError {
        self.head = self.position;
        LinkError::Protocol(self.broken.insert(problem))
    }

    /// Takes one piece; true when it completes a message.
    fn take_piece<W: Word>(&mut self, words: &[W]) -> Result<bool, LinkError> {
        let published = self.head - self.position;
        let frame = self.word(words, 0);
        let (first, last) = (frame & FIRST != 0, frame & LAST != 0);
        let length = frame & LENGTH;
        let needed = 1 + u64::from(first) + length.div_ceil(8);
        if needed > published || frame & !(FIRST | LAST | LENGTH) != 0 {
            return Err(self.breaks("a piece longer than what was published"));
        }
        // Fits: it is at most the ring's size.
        let length = usize::try_from(length).unwrap_or(0);
        if first {
            let total = self.word(words, 1);
            self.begin_message(total)?;
        }
        let Some(total) = self.total else {
            return Err(self.breaks("a piece of no message"));
        };
        if length > total - self.message.len() || last != (self.message.len() + length == total) {
            return Err(self.breaks("a message of another length than it said"));
        }
        // So a message has no more pieces than its length asks for, and taking them comes to an end.
        if !last && length != piece_bytes(self.capacity) {
            return Err(self.breaks("a piece that is not full"));
        }
        self.copy(words, self.position + 1 + u64::from(first), length);
        self.position += needed;
        words[TAIL].store(self.position, Ordering::Release);
        if last {
            self.total = None;
        }
        Ok(last)
    }

    fn begin_message(&mut self, total: u64) -> Result<(), LinkError> {
        if self.total.is_some() {
            return Err(self.breaks("a message inside another"));
        }
        let total = usize::try_from(total).ok().filter(|total| *total <= self.limit);
        let Some(total) = total else { return Err(self.breaks("a message above the limit")) };
        self.total = Some(total);
        self.message.clear();
        self.message.shrink_to(KEPT);
        Ok(())
    }

    /// Appends bytes from a position on. Memory grows with what arrives, whatever the message said.
    fn copy<W: Word>(&mut self, words: &[W], from: u64, length: usize) {
        let words = &words[DATA..];
        let mask = self.capacity - 1;
        let mut index = usize::try_from(from).unwrap_or(0);
        let start = self.message.len();
        self.message.resize(start + length, 0);
        let (chunks, rest) = self.message[start..].as_chunks_mut::<8>();
        for chunk in chunks {
            *chunk = words[index & mask].load(Ordering::Relaxed).to_le_bytes();
            index += 1;
        }
        if !rest.is_empty() {
            let word = words[index & mask].load(Ordering::Relaxed).to_le_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
    }

    fn word<W: Word>(&self, words: &[W], ahead: usize) -> u64 {
        let index = usize::try_from(self.position).unwrap_or(0) + ahead;
        words[DATA + (index & (self.capacity - 1))].load(Ordering::Relaxed)
    }
}
