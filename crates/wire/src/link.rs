//! Links, which carry messages between a host and one worker.
//!
//! A link is private to the two, works in both directions, and keeps the order. Every kind of link
//! has the same two halves at each end and passes the same conformance tests
//! (`crates/link-ipc/tests/link_conformance.rs`).

pub mod connect;
pub mod memory;
pub mod ring;

use std::io;
use std::time::Duration;

use brigade_sys::clock::Monotonic;

/// The sending half of a link's end.
///
/// In a box whose type is `dyn LinkSender`, it has the default of each method that has one, except
/// `announce`. So a link whose own methods are better, as those of the ring, has no use there.
pub trait LinkSender: Send {
    /// Sends one message, `head` followed by `payload`.
    ///
    /// The host's end never blocks: it keeps what the other side has no room for yet. A worker's
    /// end may block until the host has read; the host always reads.
    ///
    /// # Errors
    /// [`LinkError::TooLarge`] leaves the link usable; after any other error nothing can be sent
    /// any more.
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        self.send_unannounced(head, payload)?;
        self.announce()
    }

    /// Like [`send`](Self::send), but may leave a sleeping receiver asleep until
    /// [`announce`](Self::announce).
    ///
    /// # Errors
    /// Like `send`.
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError>;

    /// Like [`send_unannounced`](Self::send_unannounced), with the words of a head of at most
    /// [`HEAD_WORDS`]. Short messages are sent from registers.
    ///
    /// # Errors
    /// Like `send`.
    ///
    /// # Panics
    /// If the head is longer.
    #[inline]
    fn send_words(&mut self, head: &[u64], payload: &[u8]) -> Result<(), LinkError> {
        send_as_bytes(self, head, payload)
    }

    /// Sends the value of an item of the running chunk without a message around it, and may leave a
    /// sleeping receiver asleep until [`announce`](Self::announce). Returns `false` if this link
    /// has no short form for this value; then nothing was sent.
    ///
    /// # Errors
    /// Like `send`.
    fn send_item(&mut self, _index: u32, _value: &[u8]) -> Result<bool, LinkError> {
        Ok(false)
    }

    /// Wakes the other side if it sleeps.
    ///
    /// # Errors
    /// If the system call fails; then nothing can be sent any more.
    fn announce(&mut self) -> Result<(), LinkError> {
        Ok(())
    }

    /// Like [`announce`](Self::announce), but may wait for more messages, if this thread receives
    /// from the link next and the other side agrees. `left` is about the time that the messages
    /// that wait to be received take.
    ///
    /// # Errors
    /// Like `announce`.
    fn announce_later(&mut self, _now: Monotonic, _left: Duration) -> Result<(), LinkError> {
        self.announce()
    }

    /// Goes on after a copy of this process that has used the link, which has ended.
    ///
    /// # Errors
    /// If the copy has left something invalid, or the link cannot be used by two processes.
    fn resume(&mut self) -> Result<(), LinkError> {
        Err(LinkError::Io(io::ErrorKind::Unsupported.into()))
    }
}

/// Maximum number of words of a head that [`LinkSender::send_words`] takes.
pub const HEAD_WORDS: usize = 4;

fn send_as_bytes<S: LinkSender + ?Sized>(
    sender: &mut S,
    head: &[u64],
    payload: &[u8],
) -> Result<(), LinkError> {
    let mut bytes = [[0; 8]; HEAD_WORDS];
    let bytes = &mut bytes[..head.len()];
    for (bytes, word) in bytes.iter_mut().zip(head) {
        *bytes = word.to_le_bytes();
    }
    sender.send_unannounced(bytes.as_flattened(), payload)
}

impl LinkSender for Box<dyn LinkSender> {
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        (**self).send_unannounced(head, payload)
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        (**self).announce()
    }
}

/// The receiving half of a link's end. In a box, it has defaults as the [sender](LinkSender) has.
pub trait LinkReceiver: Send {
    /// Blocks until the next whole message arrives and returns it. The message is valid until the
    /// next call.
    ///
    /// # Errors
    /// [`LinkError::Closed`] if the other end is gone and all its messages were received;
    /// [`LinkError::Protocol`] for bytes that are not a message, which are skipped.
    fn receive(&mut self) -> Result<&[u8], LinkError>;

    /// Like [`receive`](Self::receive), but may call `before_look` before each look for the
    /// message, to do then what would take time once the message is there. Also returns the time of
    /// the look that found it, if that was read; the thread may have been interrupted in between.
    ///
    /// # Errors
    /// Like `receive`.
    fn receive_while(
        &mut self,
        _before_look: &mut dyn FnMut(),
    ) -> Result<(&[u8], Option<Monotonic>), LinkError> {
        self.receive().map(|message| (message, None))
    }

    /// Returns the approximate number of messages that have arrived and were not received; 0 if it
    /// is unknown.
    fn behind(&self) -> u64 {
        0
    }

    /// Goes on after a copy of this process that has used the link, which has ended between two
    /// messages.
    ///
    /// # Errors
    /// If the copy has left something invalid, or the link cannot be used by two processes.
    fn resume(&mut self) -> Result<(), LinkError> {
        Err(LinkError::Io(io::ErrorKind::Unsupported.into()))
    }
}

impl LinkReceiver for Box<dyn LinkReceiver> {
    fn receive(&mut self) -> Result<&[u8], LinkError> {
        (**self).receive()
    }
}

/// The reason why a message was not sent or received.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The other end is gone.
    #[error("the other end of the link is closed")]
    Closed,
    /// The other end sent bytes that are not a message.
    #[error("the other end of the link violated the protocol: {0}")]
    Protocol(&'static str),
    /// The message exceeds the link's limit.
    #[error("a message of {size} bytes is larger than the link's limit of {limit}")]
    TooLarge {
        /// Size of the message in bytes.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A system call failed.
    #[error("cannot send or receive on the link")]
    Io(#[source] io::Error),
}

impl LinkError {
    /// Returns the size of a message, unless it is above the limit.
    ///
    /// # Errors
    /// [`TooLarge`](Self::TooLarge).
    #[inline]
    pub fn size_within(limit: usize, head: &[u8], payload: &[u8]) -> Result<usize, Self> {
        let size = head.len() + payload.len();
        if size <= limit { Ok(size) } else { Err(Self::TooLarge { size, limit }) }
    }
}

/// Arguments and values from this size on are stored in an arena, if there is one. This costs two
/// copies and no waiting for room, instead of four copies.
pub const ARENA_THRESHOLD: usize = 16 * 1024;

/// Bytes that a message may have beyond its payload: the head, with names and reports.
pub const HEAD_LIMIT: usize = 64 * 1024;

/// Returns the maximum size of a message whose payload is limited to `payload` bytes.
pub const fn message_limit(payload: usize) -> usize {
    payload.saturating_add(HEAD_LIMIT)
}

brigade_sys::debug_as_text!(LinkError);
