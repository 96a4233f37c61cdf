//! The reading side.

use std::sync::atomic::Ordering;

use super::{DATA, FIRST, HEAD, LAST, LENGTH, MORE, Region, TAIL};
use crate::link::LinkError;

/// Reads messages out of a ring and puts pieces together. There is one for each ring.
#[derive(Debug)]
pub struct Consumer {
    region: Region,
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
}

/// A message's memory is kept for the next one, unless it has grown beyond this.
const KEPT: usize = 1 << 20;

impl Consumer {
    /// The consumer of a new ring, for messages of at most `limit` bytes.
    pub fn new(region: Region, limit: usize) -> Self {
        let capacity = region.capacity();
        Self { region, capacity, position: 0, head: 0, limit, total: None, message: Vec::new() }
    }

    /// Whether something was published that is not consumed.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.region.words()[HEAD].load(Ordering::Acquire) != self.position
    }

    /// Whether the producer waits for room.
    pub fn more_is_waiting(&self) -> bool {
        self.region.words()[MORE].load(Ordering::SeqCst) != 0
    }

    /// Whether a message has begun to arrive and is not whole.
    pub fn is_in_the_middle(&self) -> bool {
        self.total.is_some()
    }

    /// The message that `advance` has found.
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Takes the next message, if it is there whole; [`message`](Self::message) has it until the next call.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] when what is published cannot be; nothing can be read any more.
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        loop {
            if self.position == self.head {
                let head = self.region.words()[HEAD].load(Ordering::Acquire);
                if head < self.head || head - self.position > self.capacity as u64 {
                    return Err(LinkError::Protocol("a ring's head that cannot be"));
                }
                if head == self.position {
                    return Ok(false);
                }
                self.head = head;
            }
            if self.take_piece()? {
                return Ok(true);
            }
        }
    }

    /// Takes one piece; true when it completes a message.
    fn take_piece(&mut self) -> Result<bool, LinkError> {
        let published = self.head - self.position;
        let frame = self.word(0);
        let (first, last) = (frame & FIRST != 0, frame & LAST != 0);
        let length = frame & LENGTH;
        let needed = 1 + u64::from(first) + length.div_ceil(8);
        if needed > published || frame & !(FIRST | LAST | LENGTH) != 0 {
            return Err(LinkError::Protocol("a piece longer than what was published"));
        }
        // Fits: it is at most the ring's size.
        let length = usize::try_from(length).unwrap_or(0);
        if first {
            self.begin_message(self.word(1))?;
        }
        let total = self.total.ok_or(LinkError::Protocol("a piece of no message"))?;
        if length > total - self.message.len() || last != (self.message.len() + length == total) {
            return Err(LinkError::Protocol("a message of another length than it said"));
        }
        self.copy(self.position + 1 + u64::from(first), length);
        self.position += needed;
        self.region.words()[TAIL].store(self.position, Ordering::Release);
        if last {
            self.total = None;
        }
        Ok(last)
    }

    fn begin_message(&mut self, total: u64) -> Result<(), LinkError> {
        if self.total.is_some() {
            return Err(LinkError::Protocol("a message inside another"));
        }
        let total = usize::try_from(total).ok().filter(|total| *total <= self.limit);
        self.total = Some(total.ok_or(LinkError::Protocol("a message above the limit"))?);
        self.message.clear();
        self.message.shrink_to(KEPT);
        Ok(())
    }

    /// Appends bytes from a position on. Memory grows with what arrives, whatever the message said.
    fn copy(&mut self, from: u64, length: usize) {
        let words = &self.region.words()[DATA..];
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

    fn word(&self, ahead: usize) -> u64 {
        let index = usize::try_from(self.position).unwrap_or(0) + ahead;
        self.region.words()[DATA + (index & (self.capacity - 1))].load(Ordering::Relaxed)
    }
}
