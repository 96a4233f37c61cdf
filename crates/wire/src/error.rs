//! The errors of this crate, except those of the links.

/// A value could not be turned into bytes, or back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Its `Serialize` refused, or the format cannot carry it.
    #[error("a value of type {type_name} could not be encoded: {problem}")]
    Encode {
        /// The value's type.
        type_name: &'static str,
        /// What the encoder said.
        problem: String,
    },
    /// The bytes are not of this type.
    #[error("a value of type {type_name} could not be decoded: {problem}")]
    Decode {
        /// The value's type.
        type_name: &'static str,
        /// What the decoder said.
        problem: String,
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

/// Bytes that are no message of this protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bytes that are no message: {0}")]
pub struct MessageError(pub(crate) &'static str);
