//! The link over shared memory: two rings and the table of task states in one segment, and a
//! doorbell for all workers.
//!
//! ```text
//! words 0..     the table of task states, padded to cache lines
//! then          the ring to the worker; the worker sleeps on its bell
//! then          the ring to the host; the worker sleeps on its bell when the ring is full
//! ```
//! The host does not wait on a worker's memory: workers ring the pool's
//! [`Doorbell`](ring::Doorbell).

mod spins;
mod worker_end;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::segment::Segment;

use super::{LinkError, LinkSender, send_as_bytes};
use crate::ring::{self, Bell, Consumer, Producer, Pushed, Region};
use crate::slots::SlotTable;
pub use spins::Spins;
pub use worker_end::{WorkerEnd, WorkerReceiver, WorkerSender};

/// Data words of each ring: 256 KiB. Only the parts that are used take memory.
pub const CAPACITY: usize = 1 << 15;

/// A quarter of that, which the longest fragment takes.
const QUARTER: u64 = CAPACITY as u64 / 4;

/// Time for which a side that may spin looks before it sleeps: about the cost of a wake-up on a
/// virtual machine (25 to 60 µs), so that waiting costs at most twice as much as the better choice.
pub const SPIN: Duration = Duration::from_micros(50);

/// Returns the number of words of a segment with a table of `slots` entries and two rings.
pub const fn words(slots: u16) -> usize {
    ring_at(slots) + 2 * ring::words(CAPACITY)
}

/// Returns the offset of the first ring, on a cache line of its own.
const fn ring_at(slots: u16) -> usize {
    SlotTable::words(slots).next_multiple_of(16)
}

fn regions(segment: &Arc<Segment>, slots: u16) -> (Region, Region) {
    let length = ring::words(CAPACITY);
    let first = ring_at(slots);
    (Region::new(segment, first, length), Region::new(segment, first + length, length))
}

/// The host's end. It never sleeps; the host looks at it after the doorbell was rung.
#[derive(Debug)]
pub struct HostEnd {
    producer: Producer,
    /// Takes the messages of the worker; call [`made_room`](Self::made_room) after they were used.
    pub consumer: Consumer,
    /// The worker sleeps here while it has no tasks.
    pub worker_bell: Bell,
    /// The worker sleeps here while it has no room.
    room_bell: Bell,
    /// The number of words that were taken at the last look at this bell.
    taken_at_look: u64,
    /// Messages for which there was no room; the first one was sent up to an offset.
    waiting: VecDeque<(Vec<u8>, usize)>,
    limit: usize,
}

impl HostEnd {
    /// Creates the host's end over a new segment of `words(slots)` words.
    pub fn new(segment: &Arc<Segment>, slots: u16, limit: usize) -> Self {
        let (to_worker, to_host) = regions(segment, slots);
        Self {
            producer: Producer::new(to_worker.clone()),
            consumer: Consumer::new(to_host.clone(), limit),
            worker_bell: Bell::new(to_worker),
            room_bell: Bell::new(to_host),
            taken_at_look: 0,
            waiting: VecDeque::new(),
            limit,
        }
    }

    /// Returns `true` if the consumer or `pump` may have something to do.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.consumer.has_more() || !self.waiting.is_empty()
    }

    /// Wakes a worker that had no room for more, and frees the memory of a large message; call it
    /// after messages were taken and used.
    ///
    /// It looks at the bell once per quarter of the ring, because the look has a fence. A worker
    /// without room has filled three quarters at least, so there is a look before all of that is
    /// taken.
    #[inline]
    pub fn made_room(&mut self) {
        self.consumer.release();
        let taken = self.consumer.taken();
        if taken - self.taken_at_look >= QUARTER {
            self.taken_at_look = taken;
            self.room_bell.ring();
        }
    }

    /// Sends the messages that had to wait, as far as there is room.
    ///
    /// # Errors
    /// [`LinkError::Protocol`]: nothing can be sent any more, and the waiting messages are dropped.
    #[inline]
    pub fn pump(&mut self) -> Result<(), LinkError> {
        self.producer.check()?;
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.send_waiting().inspect_err(|_| self.waiting.clear())
    }

    fn send_waiting(&mut self) -> Result<(), LinkError> {
        let mut moved = false;
        while let Some((message, offset)) = self.waiting.front_mut() {
            match self.producer.push(&[], message, *offset)? {
                Pushed::Full => break,
                Pushed::UpTo(end) => {
                    moved = true;
                    *offset = end;
                    if end == message.len() {
                        self.waiting.pop_front();
                    }
                }
            }
        }
        if self.waiting.is_empty() {
            self.producer.has_more_waiting(false);
        }
        if moved {
            self.worker_bell.ring();
        }
        Ok(())
    }
}

impl LinkSender for HostEnd {
    #[inline]
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = LinkError::size_within(self.limit, head, payload)?;
        let mut offset = 0;
        // An empty message still needs one fragment.
        let mut whole = false;
        if self.waiting.is_empty() {
            while !whole && let Pushed::UpTo(end) = self.producer.push(head, payload, offset)? {
                (offset, whole) = (end, end == size);
            }
        }
        if !whole {
            // Nothing more is sent before the worker has made room, so it must not sleep.
            self.worker_bell.ring();
            self.waiting.push_back(([head, payload].concat(), offset));
            self.producer.has_more_waiting(true);
            // The worker may have made room, and checked for more, just before.
            self.pump()?;
        }
        Ok(())
    }

    #[inline]
    fn send_words(&mut self, head: &[u64], payload: &[u8]) -> Result<(), LinkError> {
        let fits = size_of_val(head) + payload.len() <= self.limit && self.waiting.is_empty();
        if fits && self.producer.push_short(head, payload)? {
            return Ok(());
        }
        send_as_bytes(self, head, payload)
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        self.worker_bell.ring();
        Ok(())
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
