//! Encoded values on the host.

use std::any::{TypeId, type_name};
use std::sync::Arc;

use brigade_sys::arena::Loan;
use brigade_sys::numbers::{Mark, Numbers, Unit};
use brigade_task::backend::{self, Bytes, Few};
use brigade_wire::codec::parts::{MARK_OF_END, decode_in_parts, join};
use brigade_wire::codec::{self, CodecError, Encoded, Source};
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
    /// One of the other variants, shared by several owners that decode it.
    Shared(Arc<Value>),
    /// One of the first two variants. Boxed because few values have segments.
    Segmented(Box<SegmentedValue>),
}

/// An encoded value with its segments; see [`Value`].
#[derive(Debug)]
#[expect(unnameable_types, reason = "the type of a handle, a map or a future has it inside")]
pub struct SegmentedValue {
    pub(crate) encoded: Value,
    pub(crate) buffers: Box<[SharedBuf]>,
    /// Numbers that were copied from the worker's memory. The encoding is without them.
    pub(crate) parts: Vec<(Mark, Numbers)>,
}

impl SegmentedValue {
    fn decode<R: DeserializeOwned + 'static>(self) -> Result<R, CodecError> {
        if self.parts.is_empty() {
            return self.decode_again();
        }
        let Self { encoded, buffers, parts } = self;
        encoded.with_bytes(|head| import(&buffers, || decode_in_parts(head, parts)))
    }

    fn decode_again<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        let Self { encoded, buffers, parts } = self;
        if parts.is_empty() {
            return import(buffers, || encoded.decode_again());
        }
        let decode = |head: &[u8]| codec::decode(&join(head, parts, type_name::<R>())?);
        import(buffers, || encoded.with_bytes(decode))
    }

    fn is_err(&self) -> bool {
        match self.parts.first() {
            Some((MARK_OF_END, numbers)) => codec::is_err(numbers.as_bytes()),
            _ => self.encoded.is_err(),
        }
    }
}

/// Decodes a value that refers to `buffers`.
fn import<R: 'static>(
    buffers: &[SharedBuf],
    decode: impl FnOnce() -> Result<R, CodecError>,
) -> Result<R, CodecError> {
    if buffers.is_empty() {
        return decode();
    }
    if TypeId::of::<R>() == TypeId::of::<Encoded>() {
        let source = "it refers to shared buffers, which only its own pool can read; return a `Vec<u8>` instead";
        return Err(CodecError::Decode { type_name: type_name::<R>(), source: source.into() });
    }
    importing(buffers, decode)
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
            Self::InArena(value) => !value.is_empty() && codec::is_err(&value.0.copy_to_vec(0, 1)),
            Self::Shared(value) => value.is_err(),
            Self::Segmented(value) => value.is_err(),
        }
    }

    /// Decodes a value that stays.
    pub(crate) fn decode_again<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        match self {
            Self::Inline(encoded) => codec::decode(encoded),
            Self::InArena(value) => codec::decode_from(&**value),
            Self::Shared(value) => value.decode_again(),
            Self::Segmented(value) => value.decode_again(),
        }
    }

    /// Calls a function with the encoded bytes, of which an [`ArenaValue`] is copied.
    fn with_bytes<T>(&self, with: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::Inline(encoded) => with(encoded),
            Self::InArena(value) => with(&value.0.copy_to_vec(0, value.len())),
            Self::Shared(value) => value.with_bytes(with),
            Self::Segmented(value) => value.encoded.with_bytes(with),
        }
    }

    /// Returns `true` if freeing the value takes long.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.size() >= LARGE,
            Self::InArena(_) | Self::Segmented(_) => true,
            Self::Shared(value) => value.is_large(),
        }
    }

    /// Returns the number of bytes of the encoded value.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Inline(encoded) => encoded.len(),
            Self::InArena(value) => value.0.len(),
            Self::Shared(value) => value.len(),
            Self::Segmented(value) => {
                let parts = value.parts.iter().map(|(_, part)| part.as_bytes().len());
                parts.fold(value.encoded.len(), usize::saturating_add)
            }
        }
    }

    /// Returns the number of bytes of the encoded value and its shared buffers.
    pub(crate) fn size(&self) -> usize {
        let buffers = match self {
            Self::Segmented(value) => &*value.buffers,
            Self::Inline(_) | Self::InArena(_) | Self::Shared(_) => &[],
        };
        buffers.iter().fold(self.len(), |sum, buffer| sum.saturating_add(buffer.len()))
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
            Self::Segmented(value) => value.decode(),
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

impl Source for ArenaValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy(&self, at: usize, length: usize, unit: Unit) -> Option<Numbers> {
        self.0.copy_to_numbers(at, length, unit)
    }
}
