//! The worker's end of the link over shared memory.

use std::sync::Arc;
use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_sys::segment::Segment;

use super::{SPIN, Spins, regions};
use crate::link::{LinkError, LinkReceiver, LinkSender, send_as_bytes};
use crate::ring::{Bell, Consumer, Producer, Pushed, RemoteDoorbell, SHORT_ITEM};

/// The worker's end.
#[derive(Debug)]
pub struct WorkerEnd {
    /// Sends outcomes.
    pub sender: WorkerSender,
    /// Receives tasks.
    pub receiver: WorkerReceiver,
}

/// Sends outcomes; see [`LinkSender`].
#[derive(Debug)]
pub struct WorkerSender {
    producer: Producer,
    room_bell: Bell,
    doorbell: Arc<RemoteDoorbell>,
    limit: usize,
}

/// Receives tasks; see [`LinkReceiver`].
#[derive(Debug)]
pub struct WorkerReceiver {
    consumer: Consumer,
    bell: Bell,
    doorbell: Arc<RemoteDoorbell>,
    spins: Spins,
}

impl WorkerEnd {
    /// Creates the worker's end over the host's segment.
    pub fn new(segment: &Arc<Segment>, slots: u16, doorbell: RemoteDoorbell, limit: usize) -> Self {
        let (to_worker, to_host) = regions(segment, slots);
        let doorbell = Arc::new(doorbell);
        Self {
            sender: WorkerSender {
                producer: Producer::new(to_host.clone()),
                room_bell: Bell::new(to_host),
                doorbell: Arc::clone(&doorbell),
                limit,
            },
            receiver: WorkerReceiver {
                consumer: Consumer::new(to_worker.clone(), limit),
                bell: Bell::new(to_worker),
                doorbell,
                spins: Spins::default(),
            },
        }
    }
}

impl LinkSender for WorkerSender {
    #[inline]
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let size = LinkError::size_within(self.limit, head, payload)?;
        let mut offset = 0;
        loop {
            match self.producer.push(head, payload, offset)? {
                Pushed::UpTo(end) if end == size => return Ok(()),
                Pushed::UpTo(end) => offset = end,
                Pushed::Full => self.wait_for_room()?,
            }
        }
    }

    #[inline]
    fn send_words(&mut self, head: &[u64], payload: &[u8]) -> Result<(), LinkError> {
        let fits = size_of_val(head) + payload.len() <= self.limit;
        if fits && self.producer.push_short(head, payload)? {
            return Ok(());
        }
        send_as_bytes(self, head, payload)
    }

    #[inline]
    fn send_item(&mut self, index: u32, value: &[u8]) -> Result<bool, LinkError> {
        if value.len() > SHORT_ITEM {
            return Ok(false);
        }
        while !self.producer.push_item(index, value)? {
            self.wait_for_room()?;
        }
        Ok(true)
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        self.doorbell.ring().map_err(LinkError::Io)
    }

    #[inline]
    fn announce_later(&mut self, now: Monotonic, left: Duration) -> Result<(), LinkError> {
        let sent = self.producer.sent();
        self.doorbell.ring_later(now, left, sent, || self.producer.taken()).map_err(LinkError::Io)
    }

    fn resume(&mut self) -> Result<(), LinkError> {
        self.producer.resume()
    }
}

impl WorkerSender {
    #[cold]
    fn wait_for_room(&self) -> Result<(), LinkError> {
        self.doorbell.ring().map_err(LinkError::Io)?;
        self.room_bell.sleep_unless(|| self.producer.has_moved());
        Ok(())
    }
}

impl LinkReceiver for WorkerReceiver {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        self.receive_while(&mut || ()).map(|(message, _)| message)
    }

    #[inline]
    fn receive_while(
        &mut self,
        before_look: &mut dyn FnMut(),
    ) -> Result<(&[u8], Option<Monotonic>), LinkError> {
        self.consumer.release();
        let mut found_at = None;
        while !self.consumer.advance()? {
            self.doorbell.ring_now().map_err(LinkError::Io)?;
            if self.consumer.more_is_waiting() {
                // The host had more than the ring holds, and does not know that there is room now.
                self.doorbell.ring().map_err(LinkError::Io)?;
            }
            let spins = self.doorbell.may_spin() && self.spins.begin();
            found_at = spins.then(|| self.spin(before_look)).flatten();
            if found_at.is_none() {
                self.doorbell.ring_before_sleep().map_err(LinkError::Io)?;
                self.bell.sleep_unless(|| self.consumer.has_more());
            }
        }
        Ok((self.consumer.message(), found_at))
    }

    #[inline]
    fn behind(&self) -> u64 {
        self.consumer.behind()
    }

    fn resume(&mut self) -> Result<(), LinkError> {
        self.consumer.resume()
    }
}

impl WorkerReceiver {
    /// Looks for a message for the time of [`SPIN`]; returns the time of the look that found one.
    ///
    /// Reading the time takes about as long as a pause, and it is needed once there is a message.
    fn spin(&self, before_look: &mut dyn FnMut()) -> Option<Monotonic> {
        let mut time = now();
        let end = time.saturating_add(SPIN);
        while time < end {
            before_look();
            if self.consumer.has_more_soon() {
                self.spins.end(true);
                return Some(time);
            }
            time = now();
        }
        self.spins.end(false);
        None
    }
}
