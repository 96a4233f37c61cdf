//! The errors of this crate, except those of the links.

/// A message or a packet of the handshake could not be encoded or decoded.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes are not a message of this protocol.
    #[error("malformed message: {0}")]
    Decode(&'static str),
    /// The message cannot be sent.
    #[error("the message cannot be sent: {0}")]
    Encode(&'static str),
}

brigade_sys::debug_as_text!(MessageError);
