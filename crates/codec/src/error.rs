//! The codec's errors.

use std::error::Error;

/// A value could not be encoded or decoded.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The value's `Serialize` failed, or the format does not support the value.
    #[error("a value of type {type_name} cannot be encoded")]
    Encode {
        /// The type of the value.
        type_name: &'static str,
        /// The encoder's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The bytes are not an encoded value of this type.
    #[error("a value of type {type_name} cannot be decoded")]
    Decode {
        /// The type of the value.
        type_name: &'static str,
        /// The decoder's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The value needs more bytes than a message may have.
    #[error(
        "a value of type {type_name} needs more than {limit} bytes, the limit of one message (`message_limit`); send large data in a `SharedBuf`"
    )]
    TooLarge {
        /// The type of the value.
        type_name: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
}

brigade_sys::debug_as_text!(CodecError);

/// Bytes that are not as many as the elements of a vector of numbers have.
#[derive(Debug, thiserror::Error)]
#[error("expected a count and the bytes of that many numbers, found {0} bytes")]
pub(crate) struct WrongCount(pub(crate) usize);

/// Bytes that the decoder did not need.
#[derive(Debug, thiserror::Error)]
#[error("{0} bytes are left over")]
pub(crate) struct LeftOver(pub(crate) usize);

/// Parts of an encoded value that are not what they must be.
#[derive(Debug, thiserror::Error)]
#[error("the list of its packed vectors is malformed")]
pub(crate) struct MalformedParts;

/// Packed vectors that a type has no place for.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0} of its packed vectors are not in its type; use `packed` for the same fields on both sides"
)]
pub(crate) struct UntakenParts(pub(crate) usize);
