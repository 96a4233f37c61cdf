//! Encoded arguments and values on the host: in a buffer or, if large, in memory shared with
//! workers.

mod kept;
mod value;

use std::any::type_name;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, MAX_OFFERED, SharedBlock};
use brigade_sys::numbers::SharedNumbers;
use brigade_wire::codec::parts::{self, Addresses, encode_in_parts};
use brigade_wire::codec::{self, CodecError};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::shared::{SharedBuf, exporting};
use brigade_wire::{Location, buffers as wire, items};
use serde::Serialize;

use crate::buffers::{self, ItemBuffers};
use brigade_task::backend::{Bytes, Few};
pub(crate) use kept::{KeptArgument, KeptBytes, Owed};
pub(crate) use value::{ArenaValue, BufferedValue, Outcome, Value, decode_with, undecodable};

/// Packed vectors that stay in the memory of the argument.
const KEPT_PARTS: (usize, Addresses) = (MAX_OFFERED, Addresses::Hidden);

/// From this size on, freeing memory returns it to the system, which takes long.
const LARGE: usize = 64 << 10;

/// An encoding of up to this many bytes is copied to memory of its size, and its memory is used
/// again.
const COPIED: usize = 4 << 10;

/// Memory for an encoding. Boxed, so that taking it out and putting it back moves one word instead
/// of three.
type Scratch = Box<Vec<u8>>;

thread_local! {
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// An encoded argument. Workers can read one in the arena until it is dropped.
#[derive(Debug)]
pub(crate) enum Argument {
    Inline(Bytes),
    /// Boxed, as the variants below, because each task has room for an argument but few are large.
    InArena(Box<SharedBlock>),
    Kept(Box<KeptArgument>),
    Part(Box<Part>),
    /// One of the other variants, which ends with a list of buffers, or whose items do. Boxed
    /// because few arguments have buffers.
    Buffered(Box<BufferedArgument>),
}

/// A part of an argument that was split; see [`Argument`].
#[derive(Debug)]
pub(crate) struct Part {
    whole: Arc<Argument>,
    range: Range<usize>,
}

/// An encoded argument with its shared buffers; see [`Argument`].
#[derive(Debug)]
pub(crate) struct BufferedArgument {
    encoded: Argument,
    /// Keep the memory that the list of buffers refers to. Those of a single task have the index 0.
    buffers: ItemBuffers,
}

/// An argument where it lies.
#[derive(Clone, Copy)]
pub(crate) enum ArgumentRef<'a> {
    /// The bytes of one that is inline.
    Bytes(&'a [u8]),
    Whole(&'a Argument),
}

impl<'a> ArgumentRef<'a> {
    #[inline]
    pub(crate) fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Whole(argument) => argument.as_bytes(),
        }
    }

    /// Returns the argument, unless it is nothing but its bytes.
    #[inline]
    pub(crate) fn whole(self) -> Option<&'a Argument> {
        match self {
            Self::Bytes(_) => None,
            Self::Whole(argument) => Some(argument),
        }
    }
}

impl Argument {
    /// The argument without bytes.
    pub(crate) const EMPTY: Self = Self::Inline(Bytes::Few(Few::NONE));

    /// Encodes a value. It goes to the arena if it is large and the arena has room. Its large
    /// packed vectors stay where they are if it `keeps_parts`.
    #[expect(
        clippy::inline_always,
        reason = "a processor stalls when it moves an argument that was just written"
    )]
    #[inline(always)]
    pub(crate) fn encode<T: Serialize + 'static>(
        value: &T,
        limit: usize,
        arena: Option<&Arc<ArgumentArena>>,
        keeps_parts: bool,
    ) -> Result<Self, CodecError> {
        if let (Some(arena), Some((prefix, bytes))) = (arena, codec::contiguous_parts(value))
            && let Some(argument) = Self::in_arena(&[prefix.as_slice(), bytes], limit, arena)
        {
            return Ok(argument);
        }
        // The value's own code may encode another argument meanwhile, which gets other memory.
        let mut encoded = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
        let mut parts = Vec::new();
        let (result, exported) = exporting(|| {
            let parts = keeps_parts.then_some(&mut parts);
            encode_in_parts(value, &mut encoded, limit, KEPT_PARTS, parts)
        });
        if result.is_ok() && exported.is_none() && parts.is_empty() && encoded.len() <= COPIED {
            // By far the most common case.
            return Ok(Self::copied(encoded));
        }
        let result = result.map(|()| exported);
        Self::encoded(encoded, parts, result, limit, arena, type_name::<T>())
    }

    /// Puts encoded bytes into the arena if they are large and it has room.
    #[inline]
    fn in_arena(bytes: &[&[u8]; 2], limit: usize, arena: &Arc<ArgumentArena>) -> Option<Self> {
        let length = bytes[0].len().saturating_add(bytes[1].len());
        if length < ARENA_THRESHOLD || length > limit {
            return None;
        }
        Some(Self::InArena(Box::new(arena.put(bytes)?)))
    }

    /// Copies a short encoding, whose memory is used again.
    #[inline]
    fn copied(mut encoded: Scratch) -> Self {
        let argument = Self::Inline(Bytes::copy(&encoded));
        encoded.clear();
        // Fails only at the end of the thread.
        let _ = SCRATCH.try_with(|scratch| scratch.set(Some(encoded)));
        argument
    }

    /// Returns the argument of a long encoding, or one with parts or buffers. Its code is the same
    /// for all types.
    fn encoded(
        mut encoded: Scratch,
        parts: Vec<SharedNumbers>,
        mut exported: Result<Option<Box<[SharedBuf]>>, CodecError>,
        limit: usize,
        arena: Option<&Arc<ArgumentArena>>,
        type_name: &'static str,
    ) -> Result<Self, CodecError> {
        if !parts.is_empty() {
            if matches!(exported, Ok(None)) {
                return Ok(Self::kept_in_parts(*encoded, parts, arena));
            }
            // Few values have both.
            match parts::join(&encoded, &parts, type_name) {
                Ok(joined) => *encoded = joined,
                Err(error) => exported = Err(error),
            }
        }
        let Some(exported) = exported? else { return Ok(Self::of(*encoded, arena)) };
        let room = limit.saturating_sub(encoded.len());
        let lent = append_buffers(exported, &mut encoded, room, arena, type_name)?;
        let lent = lent.into_iter().map(|buffer| (0, buffer)).collect();
        Ok(Self::with_buffers(Self::of(*encoded, arena), lent))
    }

    #[cold]
    fn kept_in_parts(
        encoded: Vec<u8>,
        parts: Vec<SharedNumbers>,
        arena: Option<&Arc<ArgumentArena>>,
    ) -> Self {
        Self::Kept(Box::new(KeptArgument::in_parts(Self::of(encoded, arena), parts)))
    }

    /// Adds the buffers that the lists in the argument refer to, in their order.
    pub(crate) fn with_buffers(encoded: Self, buffers: ItemBuffers) -> Self {
        Self::Buffered(Box::new(BufferedArgument { encoded, buffers }))
    }

    /// Returns `true` if the argument, or each of its items, ends with a list of buffers.
    #[inline]
    pub(crate) fn has_buffers(&self) -> bool {
        matches!(self, Self::Buffered(_))
    }

    /// Takes encoded bytes. They go to the arena if they are large and the arena has room.
    pub(crate) fn of(encoded: Vec<u8>, arena: Option<&Arc<ArgumentArena>>) -> Self {
        if encoded.len() >= ARENA_THRESHOLD
            && let Some(block) = arena.and_then(|arena| arena.put(&[&encoded]))
        {
            return Self::InArena(Box::new(block));
        }
        Self::Inline(encoded.into())
    }

    /// Returns the argument, if it is copied to the worker that begins its task.
    pub(crate) fn kept(&self) -> Option<&KeptArgument> {
        if let Self::Kept(kept) = self { Some(kept) } else { None }
    }

    /// Returns `true` if freeing the argument takes long.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.size() >= LARGE,
            Self::InArena(_) | Self::Kept(_) | Self::Buffered(_) => true,
            Self::Part(part) => part.whole.is_large(),
        }
    }

    /// Returns the number of bytes that are freed with the argument, at most.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Inline(encoded) => encoded.size(),
            Self::InArena(block) => block.len(),
            Self::Kept(kept) => kept.size(),
            Self::Part(part) => part.whole.size(),
            Self::Buffered(buffered) => buffered.encoded.size(),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(encoded) => encoded,
            Self::InArena(block) => block.as_bytes(),
            Self::Kept(kept) => kept.encoded(),
            Self::Part(part) => &part.whole.as_bytes()[part.range.clone()],
            Self::Buffered(buffered) => buffered.encoded.as_bytes(),
        }
    }

    /// Returns the location in the arena of an argument that lies there.
    pub(crate) fn location(&self) -> Option<Location> {
        match self {
            Self::Inline(_) | Self::Kept(_) => None,
            Self::InArena(block) => {
                let (offset, length) = (block.offset() as u64, block.len() as u64);
                Some(Location { offset, length })
            }
            Self::Part(part) => {
                let Part { whole, range } = &**part;
                let Location { offset, .. } = whole.location()?;
                let (start, length) = (range.start as u64, range.len() as u64);
                Some(Location { offset: offset + start, length })
            }
            Self::Buffered(buffered) => buffered.encoded.location(),
        }
    }

    /// Splits off the bytes from `at` on, without a copy. These are the items from `item` on.
    pub(crate) fn split_off(&mut self, at: usize, item: u32) -> Self {
        if let Self::Buffered(buffered) = self {
            let rest = buffered.encoded.split_off(at, item);
            let first = buffered.buffers.partition_point(|(index, _)| *index < item);
            let behind = buffered.buffers.split_off(first).into_iter();
            let behind = behind.map(|(index, buffer)| (index - item, buffer)).collect();
            return Self::with_buffers(rest, behind);
        }
        let Part { whole, range } = match std::mem::replace(self, Self::EMPTY) {
            Self::Part(part) => *part,
            whole => {
                let range = 0..whole.as_bytes().len();
                Part { whole: Arc::new(whole), range }
            }
        };
        let middle = range.start + at;
        let rest = Part { whole: Arc::clone(&whole), range: middle..range.end };
        *self = Self::Part(Box::new(Part { whole, range: range.start..middle }));
        Self::Part(Box::new(rest))
    }

    /// Returns the buffers that are lent to whoever gets the argument.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &SharedBuf> {
        let buffers = match self {
            Self::Buffered(buffered) => buffered.buffers.as_slice(),
            Self::Inline(_) | Self::InArena(_) | Self::Kept(_) | Self::Part(_) => &[],
        };
        buffers.iter().map(|(_, buffer)| buffer)
    }

    /// Returns the encoded argument with the bytes of the buffers that the worker cannot read.
    /// Returns `None` if it can read all of them, or the result exceeds `limit` bytes.
    pub(crate) fn inlined(
        &self,
        is_chunk: bool,
        limit: usize,
        mut can_read: impl FnMut(&SharedBuf) -> bool,
    ) -> Option<Vec<u8>> {
        let Self::Buffered(buffered) = self else { return None };
        // Looks at all of them, so that the worker has their arenas in the end.
        if !self.buffers().fold(false, |any, buffer| any | !can_read(buffer)) {
            return None;
        }
        let mut buffers = self.buffers();
        let mut inlined = Vec::new();
        let mut convert = |bytes: &[u8], into: &mut Vec<u8>| {
            let (encoded, list) = wire::split(bytes)?;
            into.extend_from_slice(encoded);
            buffers::append_inline(list, buffers.by_ref(), &mut can_read, into, limit)
        };
        let mut rest = buffered.encoded.as_bytes();
        if is_chunk {
            while let Some(item) = items::take(&mut rest) {
                let item = item.ok()?;
                items::push_with(&mut inlined, |into| convert(item, into)).ok()?;
            }
        } else {
            convert(rest, &mut inlined).ok()?;
        }
        Some(inlined).filter(|inlined| inlined.len() <= limit)
    }

    /// Returns the argument again, as a copy of its encoded bytes.
    pub(crate) fn copy(&self, arena: Option<&Arc<ArgumentArena>>) -> Self {
        if let Some(again) = self.kept().and_then(|kept| kept.again(|head| head.copy(arena))) {
            return Self::Kept(Box::new(again));
        }
        let encoded = Self::of(self.as_bytes().to_vec(), arena);
        match self {
            Self::Buffered(buffered) => Self::with_buffers(encoded, buffered.buffers.clone()),
            Self::Inline(_) | Self::InArena(_) | Self::Kept(_) | Self::Part(_) => encoded,
        }
    }
}

/// Appends the list of an argument's buffers to its encoding.
#[cold]
pub(crate) fn append_buffers(
    exported: Box<[SharedBuf]>,
    encoded: &mut Vec<u8>,
    room: usize,
    arena: Option<&Arc<ArgumentArena>>,
    type_name: &'static str,
) -> Result<Vec<SharedBuf>, CodecError> {
    buffers::append(exported, encoded, room, arena)
        .map_err(|error| CodecError::Encode { type_name, source: error.into() })
}
