//! Encoded values on the host.

use std::any::{TypeId, type_name};
use std::sync::Arc;

use brigade_sys::arena::Loan;
use brigade_sys::numbers::{Numbers, Unit};
use brigade_task::backend::{self, Bytes, Few};
use brigade_wire::codec::{self, CodecError, Encoded, Owned, Source};
use brigade_wire::shared::{SharedBuf, importing};
use serde::de::DeserializeOwned;

use super::LARGE;

/// An encoded value. One in the arena lies in its worker's memory, whose content may change at any
/// time.
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub enum Value {
    Inline(Bytes),
    /// Boxed because all values are moved but few are in the arena.
    InArena(Box<ArenaValue>),
    /// One that was copied from its worker's memory. Boxed as above.
    Owned(Box<Owned>),
    /// One of the other variants, shared by several owners that decode it.
    Shared(Arc<Value>),
    /// One of the first two variants. Boxed because few values have buffers.
    Buffered(Box<BufferedValue>),
}

/// Decodes a value that refers to `buffers`.
#[cold]
pub(crate) fn decode_with<R: 'static>(
    buffers: &[SharedBuf],
    decode: impl FnOnce() -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    if TypeId::of::<R>() == TypeId::of::<Encoded>() {
        let source = "it refers to shared buffers, which only its own pool can read; return a `Vec<u8>` instead";
        return Err(CodecError::Decode { type_name: type_name::<R>(), source: source.into() });
    }
    importing(buffers, decode)
}

/// An encoded value with its shared buffers; see [`Value`].
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct BufferedValue {
    pub(crate) encoded: Value,
    pub(crate) buffers: Box<[SharedBuf]>,
}

/// A value that lies in its worker's memory; see [`Value`].
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct ArenaValue(pub(crate) Loan);

/// The encoded value of a task, or its failure.
pub(crate) type Outcome = backend::Outcome<Value>;

/// Says that a result cannot be decoded.
#[cold]
pub(crate) fn undecodable(error: &CodecError) -> String {
    format!("the result arrived but cannot be decoded: {}", codec::chain(error))
}

impl Value {
    /// The value without bytes.
    pub(crate) const EMPTY: Self = Self::Inline(Bytes::Few(Few::NONE));

    /// Returns `true` if the value, which is a `Result`, is an `Err`.
    pub(crate) fn is_err(&self) -> bool {
        match self {
            Self::Inline(encoded) => codec::is_err(encoded),
            Self::Owned(value) => value.is_err(),
            Self::InArena(value) => value.is_err(),
            Self::Shared(value) => value.is_err(),
            Self::Buffered(value) => value.encoded.is_err(),
        }
    }

    /// Decodes a value that stays.
    pub(crate) fn decode_again<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        match self {
            Self::Inline(encoded) => codec::decode(encoded),
            Self::InArena(value) => codec::decode_from(&**value),
            Self::Owned(value) => value.decode_again(),
            Self::Shared(value) => value.decode_again(),
            Self::Buffered(value) => decode_with(&value.buffers, || value.encoded.decode_again()),
        }
    }

    /// Returns `true` if freeing the value takes long.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.size() >= LARGE,
            Self::InArena(_) | Self::Owned(_) | Self::Buffered(_) => true,
            Self::Shared(value) => value.is_large(),
        }
    }

    /// Returns the number of bytes of the encoded value.
    #[cfg(feature = "recording")]
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Inline(encoded) => encoded.len(),
            Self::InArena(value) => value.0.len(),
            Self::Owned(value) => value.len(),
            Self::Shared(value) => value.len(),
            Self::Buffered(value) => value.encoded.len(),
        }
    }
}

impl From<Bytes> for Value {
    #[inline]
    fn from(bytes: Bytes) -> Self {
        Self::Inline(bytes)
    }
}

impl backend::Value for Value {
    #[inline]
    fn into_bytes(self) -> Result<Bytes, Self> {
        if let Self::Inline(bytes) = self { Ok(bytes) } else { Err(self) }
    }

    fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        match self {
            Self::Owned(value) => value.decode(),
            Self::Shared(value) => match Arc::try_unwrap(value) {
                Ok(value) => value.decode(),
                Err(value) => value.decode_again(),
            },
            other => other.decode_again(),
        }
    }

    fn share(&mut self) -> Self {
        let shared = match std::mem::replace(self, Self::EMPTY) {
            Self::Shared(shared) => shared,
            alone => Arc::new(alone),
        };
        *self = Self::Shared(Arc::clone(&shared));
        Self::Shared(shared)
    }
}

impl ArenaValue {
    /// Returns `true` if the value, which is a `Result`, is an `Err`.
    pub(crate) fn is_err(&self) -> bool {
        !self.is_empty() && codec::is_err(&self.0.copy_to_vec(0, 1))
    }
}

impl Source for ArenaValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy(&self, at: usize, length: usize, unit: Unit) -> Option<Numbers> {
        self.0.copy_to_numbers(at, length, unit)
    }
}
