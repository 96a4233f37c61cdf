//! The link over shared memory: two rings and a table of task states in one segment, a doorbell for all workers.
//!
//! ```text
//! words 0..                 the table of task states, padded to cache lines
//! then                      the ring to the worker; the worker sleeps on its bell
//! then                      the ring to the host; the worker sleeps on its bell when the ring is full
//! ```
//! The host does not wait on a worker's memory: workers ring the pool's [`Doorbell`](ring::Doorbell).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::now;
use brigade_sys::segment::Segment;

use super::{LinkError, LinkReceiver, LinkSender};
use crate::ring::{self, Bell, Consumer, Knocker, Producer, Pushed, Region};
use crate::slots::SlotTable;

/// Data words of each ring: 256 KiB. Memory is touched, and so taken, only as far as it is used.
pub const CAPACITY: usize = 1 << 15;

/// How long a side that may spin looks before it sleeps: about what a wake-up costs on a virtual machine (25 to 60 µs),
/// so that the wait is at most twice what the better choice would have cost.
pub const SPIN: Duration = Duration::from_micros(50);

/// Words of a segment with a table of so many slots and two rings.
pub const fn words(slots: u16) -> usize {
    ring_at(slots) + 2 * ring::words(CAPACITY)
}

/// Where the first ring begins, on a cache line of its own.
const fn ring_at(slots: u16) -> usize {
    SlotTable::words(slots).next_multiple_of(16)
}

fn regions(segment: &Arc<Segment>, slots: u16) -> (Region, Region) {
    let length = ring::words(CAPACITY);
    let first = ring_at(slots);
    (Region::new(segment, first, length), Region::new(segment, first + length, length))
}

/// The host's end. It never sleeps; it is looked at when the doorbell was rung.
#[derive(Debug)]
pub struct HostEnd {
    producer: Producer,
    consumer: Consumer,
    /// The worker sleeps here for want of tasks.
    worker_bell: Bell,
    /// The worker sleeps here for want of room.
    room_bell: Bell,
    /// Messages for which there was no room, the first one sent up to an offset.
    waiting: VecDeque<(Vec<u8>, usize)>,
    /// Whether the worker slept at the last announcement.
    woke_worker: bool,
    limit: usize,
}

impl HostEnd {
    /// The host's end over a new segment of `words(slots)` words.
    pub fn new(segment: &Arc<Segment>, slots: u16, limit: usize) -> Self {
        let (to_worker, to_host) = regions(segment, slots);
        Self {
            producer: Producer::new(to_worker.clone()),
            consumer: Consumer::new(to_host.clone(), limit),
            worker_bell: Bell::new(to_worker),
            room_bell: Bell::new(to_host),
            waiting: VecDeque::new(),
            woke_worker: false,
            limit,
        }
    }

    /// Takes the next answer, if there is one; [`message`](Self::message) has it.
    ///
    /// # Errors
    /// [`LinkError::Protocol`]: nothing can be received any more.
    #[inline]
    pub fn advance(&mut self) -> Result<bool, LinkError> {
        self.consumer.advance()
    }

    /// The answer that `advance` has found.
    pub fn message(&self) -> &[u8] {
        self.consumer.message()
    }

    /// Whether an answer has begun to arrive and waits for room for the rest.
    pub fn is_in_the_middle(&self) -> bool {
        self.consumer.is_in_the_middle()
    }

    /// Whether `advance` or `pump` may have something to do.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.consumer.has_more() || !self.waiting.is_empty()
    }

    /// Whether the worker slept when it was announced to last that something was sent.
    pub fn woke_worker(&self) -> bool {
        self.woke_worker
    }

    /// After answers were taken: lets a worker go on that had no room for more.
    pub fn made_room(&self) {
        self.room_bell.ring();
    }

    /// Sends on what had to wait.
    ///
    /// # Errors
    /// [`LinkError::Protocol`]: nothing can be sent any more, and what waits is dropped.
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
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        self.send_unannounced(head, payload)?;
        self.announce()
    }

    #[inline]
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = head.len() + payload.len();
        if size > self.limit {
            return Err(LinkError::TooLarge { size, limit: self.limit });
        }
        let mut offset = 0;
        // An empty message is a piece as well.
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
            // The worker may have made room, and looked whether more is waiting, just before.
            self.pump()?;
        }
        Ok(())
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        self.woke_worker = self.worker_bell.ring();
        Ok(())
    }
}

/// The worker's end.
#[derive(Debug)]
pub struct WorkerEnd {
    /// Sends answers.
    pub sender: WorkerSender,
    /// Receives tasks.
    pub receiver: WorkerReceiver,
}

/// Sends answers; see [`LinkSender`].
#[derive(Debug)]
pub struct WorkerSender {
    producer: Producer,
    room_bell: Bell,
    knocker: Arc<Knocker>,
    limit: usize,
}

/// Receives tasks; see [`LinkReceiver`].
#[derive(Debug)]
pub struct WorkerReceiver {
    consumer: Consumer,
    bell: Bell,
    knocker: Arc<Knocker>,
}

impl WorkerEnd {
    /// The worker's end over the host's segment.
    pub fn new(segment: &Arc<Segment>, slots: u16, knocker: Knocker, limit: usize) -> Self {
        let (to_worker, to_host) = regions(segment, slots);
        let knocker = Arc::new(knocker);
        Self {
            sender: WorkerSender {
                producer: Producer::new(to_host.clone()),
                room_bell: Bell::new(to_host),
                knocker: Arc::clone(&knocker),
                limit,
            },
            receiver: WorkerReceiver {
                consumer: Consumer::new(to_worker.clone(), limit),
                bell: Bell::new(to_worker),
                knocker,
            },
        }
    }
}

impl LinkSender for WorkerSender {
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        self.send_unannounced(head, payload)?;
        self.announce()
    }

    #[inline]
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = head.len() + payload.len();
        if size > self.limit {
            return Err(LinkError::TooLarge { size, limit: self.limit });
        }
        let mut offset = 0;
        loop {
            match self.producer.push(head, payload, offset)? {
                Pushed::UpTo(end) if end == size => return Ok(()),
                Pushed::UpTo(end) => offset = end,
                Pushed::Full => {
                    self.knocker.ring().map_err(LinkError::Io)?;
                    self.room_bell.sleep_unless(|| self.producer.has_moved());
                }
            }
        }
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        self.knocker.ring().map_err(LinkError::Io)
    }
}

impl LinkReceiver for WorkerReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        while !self.consumer.advance()? {
            if self.consumer.more_is_waiting() {
                // The host had more than the ring holds, and does not know that there is room now.
                self.knocker.ring().map_err(LinkError::Io)?;
            }
            if !self.knocker.may_spin() || !spin_until(|| self.consumer.has_more()) {
                self.bell.sleep_unless(|| self.consumer.has_more());
            }
        }
        Ok(self.consumer.message())
    }
}

/// Looks for at most [`SPIN`]; whether what was looked for came.
pub fn spin_until(mut condition: impl FnMut() -> bool) -> bool {
    let end = now().saturating_add(SPIN);
    loop {
        for _ in 0..16 {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if now() >= end {
            return false;
        }
    }
}

#[cfg(test)]
mod tests;
