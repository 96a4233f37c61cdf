//! Encoded arguments and results on the host's side: in a buffer, or, large ones, in memory that workers share.

use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, Loan, SharedBlock};
use brigade_wire::codec::{self, CodecError, Source};
use brigade_wire::link::PLACE_FROM;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// From this size on memory goes back to the system when it is freed, which takes a while.
const LARGE: usize = 64 << 10;

/// An encoded argument. A placed one can be read by workers until it is dropped.
#[derive(Debug)]
pub(crate) enum Argument {
    Inline(Vec<u8>),
    Placed(SharedBlock),
}

impl Argument {
    /// The encoded value, placed if it is large and there is an arena with room.
    pub(crate) fn encode<T: Serialize + 'static>(
        value: &T,
        limit: usize,
        arena: Option<&Arc<ArgumentArena>>,
    ) -> Result<Self, CodecError> {
        if let (Some(arena), Some((prefix, bytes))) = (arena, codec::contiguous_parts(value)) {
            let length = bytes.len().saturating_add(prefix.as_slice().len());
            if length >= PLACE_FROM
                && length <= limit
                && let Some(block) = arena.put(&[prefix.as_slice(), bytes])
            {
                return Ok(Self::Placed(block));
            }
        }
        let mut encoded = Vec::new();
        codec::encode(value, &mut encoded, limit)?;
        Ok(Self::of(encoded, arena))
    }

    /// Encoded bytes, placed if they are many and there is an arena with room.
    pub(crate) fn of(encoded: Vec<u8>, arena: Option<&Arc<ArgumentArena>>) -> Self {
        if encoded.len() >= PLACE_FROM
            && let Some(block) = arena.and_then(|arena| arena.put(&[&encoded]))
        {
            return Self::Placed(block);
        }
        Self::Inline(encoded)
    }

    /// Whether it takes a while to free it.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.capacity() >= LARGE,
            Self::Placed(_) => true,
        }
    }

    /// The bytes that are freed with it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Inline(encoded) => encoded.capacity(),
            Self::Placed(block) => block.len(),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Inline(encoded) => encoded,
            Self::Placed(block) => block.as_bytes().to_vec(),
        }
    }
}

/// An encoded result. A placed one lies in its worker's memory, which may not keep still.
#[derive(Debug)]
pub(crate) enum Value {
    Inline(Vec<u8>),
    /// Boxed, because all values are moved and few are placed.
    Placed(Box<PlacedValue>),
    /// One of the others, for several who decode it.
    Shared(Arc<Value>),
}

/// See [`Value`].
#[derive(Debug)]
pub(crate) struct PlacedValue(pub(crate) Loan);

impl Value {
    pub(crate) fn decode<R: DeserializeOwned + 'static>(&self) -> Result<R, CodecError> {
        match self {
            Self::Inline(encoded) => codec::decode(encoded),
            Self::Placed(placed) => codec::decode_from(&**placed),
            Self::Shared(value) => value.decode(),
        }
    }

    /// Whether it takes a while to free it.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.capacity() >= LARGE,
            Self::Placed(_) => true,
            Self::Shared(value) => value.is_large(),
        }
    }

    /// The same value once more, without a copy.
    pub(crate) fn share(&mut self) -> Self {
        let shared = match std::mem::replace(self, Self::Inline(Vec::new())) {
            Self::Shared(shared) => shared,
            alone => Arc::new(alone),
        };
        *self = Self::Shared(Arc::clone(&shared));
        Self::Shared(shared)
    }
}

impl Source for PlacedValue {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn copy(&self, at: usize, length: usize) -> Vec<u8> {
        self.0.copy_to_vec(at, length)
    }
}
