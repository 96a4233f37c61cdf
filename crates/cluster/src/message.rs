//! Messages between clients and nodes: a version, a head, and a body that is not copied.
//!
//! ```text
//! version  1 byte
//! length   4 bytes, little-endian: the bytes of the head
//! head     a struct, in postcard
//! body     the encoded items of a task or an outcome, each behind its length; empty otherwise
//! ```

mod body;
mod history;
mod items;
mod notes;
mod outcome;
mod task;

use std::sync::atomic::{AtomicU8, Ordering};

use brigade_codec::{chain, decode, encode};
use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use body::{Body, StoredBody};
#[cfg(feature = "node")]
pub(crate) use history::DeliveryId;
pub(crate) use history::History;
pub use history::{Incident, Report};
pub(crate) use items::{INLINE_LIMIT, Items, ItemsBuilder};
pub use notes::NodeStatus;
pub(crate) use notes::{CancelMessage, DeadLetterMessage, Manifest, StartMessage};
pub(crate) use outcome::{OutcomeHead, OutcomeMessage, item_outcome};
pub(crate) use task::{RunSettings, TaskHead, TaskMessage};

/// Version of all messages of this crate. Both sides refuse others: a queue is empty before an
/// upgrade that raises it.
static VERSION: AtomicU8 = AtomicU8::new(3);

/// Maximum number of bytes of a head. The longest is a dead letter with its history.
const HEAD_LIMIT: usize = 512 << 10;

/// Bytes of the version and the length.
const PREFIX: usize = 5;

/// Bytes are not a message of this version.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    /// The message is from a newer or older program.
    #[error(
        "the message has the version {found}, and this program knows {known}: use the same version of Brigade for clients and nodes"
    )]
    Version {
        /// The message's version.
        found: u8,
        /// The version that can be read.
        known: u8,
    },
    /// The message is malformed.
    #[error("the message is malformed: {0}")]
    Malformed(String),
    /// The message cannot be encoded.
    #[error("the message cannot be encoded: {0}")]
    Encode(String),
}

impl MessageError {
    fn malformed(reason: impl Into<String>) -> Self {
        Self::Malformed(reason.into())
    }
}

/// Lets this process speak another version, for tests of clusters with programs of different ones.
#[doc(hidden)]
pub fn __speak_version(version: u8) {
    VERSION.store(version, Ordering::Relaxed);
}

fn version_of_this_program() -> u8 {
    VERSION.load(Ordering::Relaxed)
}

/// Returns the version of a message.
pub(crate) fn version_of(message: &[u8]) -> Option<u8> {
    message.first().copied()
}

/// Returns a message without a body.
fn to_bytes<H: Serialize + 'static>(head: &H) -> Result<Bytes, MessageError> {
    with_head(&encoded(head)?, &[])
}

/// Returns an encoded head, or a part of one.
fn encoded<H: Serialize + 'static>(head: &H) -> Result<Vec<u8>, MessageError> {
    let mut encoded = Vec::new();
    encode(head, &mut encoded, HEAD_LIMIT).map_err(|error| MessageError::Encode(chain(&error)))?;
    Ok(encoded)
}

/// Returns the message with an encoded head.
fn with_head(head: &[u8], body: &[u8]) -> Result<Bytes, MessageError> {
    let length = u32::try_from(head.len())
        .map_err(|_| MessageError::Encode("the head is too long".to_owned()))?;
    let mut message = BytesMut::with_capacity(PREFIX + head.len() + body.len());
    message.put_u8(version_of_this_program());
    message.put_u32_le(length);
    message.put_slice(head);
    message.put_slice(body);
    Ok(message.freeze())
}

/// Returns the head and the body of a message.
fn from_bytes<H: DeserializeOwned + 'static>(message: &Bytes) -> Result<(H, Bytes), MessageError> {
    let (version, rest) =
        message.split_first().ok_or_else(|| MessageError::malformed("it is empty"))?;
    let known = version_of_this_program();
    if *version != known {
        return Err(MessageError::Version { found: *version, known });
    }
    let cut = || MessageError::malformed("it is cut off");
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| cut())?;
    let head = rest.get(..length).ok_or_else(cut)?;
    let head = decode(head).map_err(|error| MessageError::malformed(chain(&error)))?;
    Ok((head, message.slice(PREFIX + length..)))
}

/// Implements the conversions of a message without a body.
macro_rules! impl_head_only {
    ($($message:ty),*) => {$(
        impl $message {
            pub(crate) fn to_bytes(&self) -> Result<bytes::Bytes, crate::message::MessageError> {
                crate::message::to_bytes(self)
            }

            pub(crate) fn from_bytes(
                message: &bytes::Bytes,
            ) -> Result<Self, crate::message::MessageError> {
                let (head, body) = crate::message::from_bytes(message)?;
                if body.is_empty() {
                    Ok(head)
                } else {
                    Err(crate::message::MessageError::malformed("bytes are left over"))
                }
            }
        }
    )*};
}

use impl_head_only;

#[cfg(test)]
mod tests;
