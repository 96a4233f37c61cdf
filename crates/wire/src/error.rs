//! The errors of this crate, except those of the links.

use std::error::Error;

/// A value could not be turned into bytes, or back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Its `Serialize` refused, or the format cannot carry it.
    #[error("a value of type {type_name} could not be encoded")]
    Encode {
        /// The value's type.
        type_name: &'static str,
        /// What the encoder said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The bytes are not of this type.
    #[error("a value of type {type_name} could not be decoded")]
    Decode {
        /// The value's type.
        type_name: &'static str,
        /// What the decoder said.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It needs more bytes than a message may have.
    #[error(
        "a value of type {type_name} needs more than {limit} bytes, the limit of one message (`message_limit`)"
    )]
    TooLarge {
        /// The value's type.
        type_name: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// A message or a packet of the handshake could not be turned into bytes, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes are no message of this protocol.
    #[error("bytes that are no message: {0}")]
    Decode(&'static str),
    /// The message cannot be sent.
    #[error("a message that cannot be sent: {0}")]
    Encode(&'static str),
}

/// Bytes that the decoder did not need.
#[derive(Debug, thiserror::Error)]
#[error("{0} bytes are left over")]
pub(crate) struct LeftOver(pub(crate) usize);
