//! Links: how messages travel between a host and one worker.
//!
//! A link is private to the two, duplex, and keeps the order. Each flavour has the same two halves at each end, and passes
//! the same conformance tests (`tests/link_conformance.rs`).

pub mod ipc;
pub mod memory;
pub mod ring;

use std::io;

/// The sending half.
pub trait LinkSender: Send {
    /// Sends one message, `head` followed by `payload`.
    ///
    /// The host's end never blocks: what the other side has no room for yet waits in here. A worker's end may block until
    /// the host, which always reads, has read.
    ///
    /// # Errors
    /// [`LinkError::TooLarge`] leaves the link usable; after any other error nothing can be sent any more.
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError>;

    /// As [`send`](Self::send), but a sleeping other side may be left asleep until [`announce`](Self::announce).
    ///
    /// # Errors
    /// As `send`.
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        self.send(head, payload)
    }

    /// Wakes the other side if it sleeps.
    ///
    /// # Errors
    /// When the system refuses; then nothing can be sent any more.
    fn announce(&mut self) -> Result<(), LinkError> {
        Ok(())
    }
}

/// The receiving half.
pub trait LinkReceiver: Send {
    /// Waits for the next whole message. It is there until the next call.
    ///
    /// # Errors
    /// [`LinkError::Closed`] when the other end is gone and everything that it had sent was received;
    /// [`LinkError::Protocol`] for bytes that are no message, which are passed over.
    fn receive(&mut self) -> Result<&[u8], LinkError>;
}

/// Why a message did not get through.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The other end is gone.
    #[error("the other end of the link is closed")]
    Closed,
    /// The other end sent bytes that are no message.
    #[error("the other end of the link broke the protocol: {0}")]
    Protocol(&'static str),
    /// The message is larger than the link carries.
    #[error("a message of {size} bytes is larger than the link's limit of {limit}")]
    TooLarge {
        /// The message.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// The system refused.
    #[error("failed to use the link")]
    Io(#[source] io::Error),
}

/// Arguments and results from this size on are placed in an arena, where there is one: two copies and no waiting for room,
/// instead of four copies.
pub const PLACE_FROM: usize = 16 * 1024;

/// So much more than a payload's limit a whole message may have: its head, with names and reports.
pub const HEAD_LIMIT: usize = 64 * 1024;

/// The most bytes of a message whose payload is limited to `payload` bytes.
pub const fn message_limit(payload: usize) -> usize {
    payload.saturating_add(HEAD_LIMIT)
}
