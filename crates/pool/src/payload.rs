//! Encoded arguments and values on the host: in a buffer or, if large, in memory shared with
//! workers.

mod kept;
mod value;

use std::any::type_name;
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use brigade_sys::arena::{ArgumentArena, MAX_OFFERED, SharedBlock};
use brigade_sys::numbers::{Mark, SharedNumbers};
use brigade_wire::codec::parts::{MARK_OF_END, encode_in_parts, joined_length};
use brigade_wire::codec::{self, CodecError};
use brigade_wire::link::ARENA_THRESHOLD;
use brigade_wire::segments::{self, Segment};
use brigade_wire::shared::{SharedBuf, exporting};
use brigade_wire::{Location, items};
use serde::Serialize;

use crate::buffers::{self, ItemBuffers};
use brigade_task::backend::{Bytes, Few};
pub(crate) use kept::{KeptParts, Owed};
pub(crate) use value::{ArenaValue, Outcome, SegmentedValue, Value, undecodable};

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
    Part(Box<Part>),
    /// One of the other variants, which ends with a list of segments, or whose items do.
    Segmented(Box<SegmentedArgument>),
}

/// A part of an argument that was split; see [`Argument`].
#[derive(Debug)]
pub(crate) struct Part {
    whole: Arc<Argument>,
    range: Range<usize>,
}

/// An encoded argument with its segments; see [`Argument`].
#[derive(Debug)]
pub(crate) struct SegmentedArgument {
    encoded: Argument,
    /// Keep the memory that the list of segments refers to. Those of a single task have the index
    /// 0.
    buffers: ItemBuffers,
    kept: Option<Arc<KeptParts>>,
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
            encode_in_parts(value, &mut encoded, limit, MAX_OFFERED, parts)
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

    /// Returns the argument of a long encoding, or one with segments. Its code is the same for all
    /// types.
    fn encoded(
        mut encoded: Scratch,
        parts: Vec<(Mark, SharedNumbers)>,
        exported: Result<Option<Box<[SharedBuf]>>, CodecError>,
        limit: usize,
        arena: Option<&Arc<ArgumentArena>>,
        type_name: &'static str,
    ) -> Result<Self, CodecError> {
        let exported = exported?;
        if exported.is_none() && parts.is_empty() {
            return Ok(Self::of(*encoded, arena));
        }
        let kept = (!parts.is_empty()).then(|| KeptParts::new(parts));
        let parts: Vec<_> = kept.iter().flat_map(|kept| kept.segments()).collect();
        // Only the bytes of buffers count.
        let room = exported.as_ref().map_or(usize::MAX, |_| {
            let lengths = parts.iter().map(|part| (part.mark, part.length));
            limit.saturating_sub(joined_length(encoded.len(), lengths))
        });
        let exported = exported.unwrap_or_default();
        let lent = buffers::append(exported, &parts, &mut encoded, room, arena, type_name)?;
        let buffers = lent.into_iter().map(|buffer| (0, buffer)).collect();
        let encoded = Self::of(*encoded, arena);
        Ok(Self::Segmented(Box::new(SegmentedArgument { encoded, buffers, kept })))
    }

    /// Takes the memory of an argument that [suits](KeptParts::suits). Returns another owner of it,
    /// too.
    pub(crate) fn keep<A: 'static>(argument: A) -> (Self, Arc<KeptParts>) {
        let prefix = codec::contiguous_parts(&argument).map(|(prefix, _)| prefix);
        let mut encoded = prefix.map_or_else(Vec::new, |prefix| prefix.as_slice().to_vec());
        let numbers = codec::into_numbers(argument).unwrap_or_default();
        let kept = KeptParts::new(vec![(MARK_OF_END, SharedNumbers::of(Arc::new(numbers)))]);
        let list: Vec<_> = kept.segments().map(Segment::Apart).collect();
        let appended = segments::append(&mut encoded, &list, usize::MAX);
        debug_assert!(appended.is_ok(), "one segment");
        let (encoded, buffers) = (Self::Inline(encoded.into()), Vec::new());
        let segmented = SegmentedArgument { encoded, buffers, kept: Some(Arc::clone(&kept)) };
        (Self::Segmented(Box::new(segmented)), kept)
    }

    /// Adds the buffers that the lists in the argument refer to, in their order.
    pub(crate) fn with_buffers(encoded: Self, buffers: ItemBuffers) -> Self {
        Self::Segmented(Box::new(SegmentedArgument { encoded, buffers, kept: None }))
    }

    /// Returns `true` if the argument, or each of its items, ends with a list of segments.
    #[inline]
    pub(crate) fn has_segments(&self) -> bool {
        matches!(self, Self::Segmented(_))
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

    /// Returns the numbers that are copied to the worker that begins the task.
    pub(crate) fn kept(&self) -> Option<&Arc<KeptParts>> {
        if let Self::Segmented(segmented) = self { segmented.kept.as_ref() } else { None }
    }

    /// Returns `true` if freeing the argument takes long.
    pub(crate) fn is_large(&self) -> bool {
        match self {
            Self::Inline(encoded) => encoded.size() >= LARGE,
            Self::InArena(_) | Self::Segmented(_) => true,
            Self::Part(part) => part.whole.is_large(),
        }
    }

    /// Returns the number of bytes that are freed with the argument, at most.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Inline(encoded) => encoded.size(),
            Self::InArena(block) => block.len(),
            Self::Part(part) => part.whole.size(),
            Self::Segmented(segmented) => {
                segmented.encoded.size() + segmented.kept.as_ref().map_or(0, |kept| kept.size())
            }
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline(encoded) => encoded,
            Self::InArena(block) => block.as_bytes(),
            Self::Part(part) => &part.whole.as_bytes()[part.range.clone()],
            Self::Segmented(segmented) => segmented.encoded.as_bytes(),
        }
    }

    /// Returns the location in the arena of an argument that lies there.
    pub(crate) fn location(&self) -> Option<Location> {
        match self {
            Self::Inline(_) => None,
            Self::InArena(block) => Some(Location::of(block.offset(), block.len())),
            Self::Part(part) => {
                let Part { whole, range } = &**part;
                let Location { offset, .. } = whole.location()?;
                let (start, length) = (range.start as u64, range.len() as u64);
                Some(Location { offset: offset + start, length })
            }
            Self::Segmented(segmented) => segmented.encoded.location(),
        }
    }

    /// Splits off the bytes from `at` on, without a copy. These are the items from `item` on.
    pub(crate) fn split_off(&mut self, at: usize, item: u32) -> Self {
        if let Self::Segmented(segmented) = self {
            let rest = segmented.encoded.split_off(at, item);
            let first = segmented.buffers.partition_point(|(index, _)| *index < item);
            let behind = segmented.buffers.split_off(first).into_iter();
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
            Self::Segmented(segmented) => segmented.buffers.as_slice(),
            Self::Inline(_) | Self::InArena(_) | Self::Part(_) => &[],
        };
        buffers.iter().map(|(_, buffer)| buffer)
    }

    /// Returns the encoded argument with those segments in it that the worker cannot get: buffers
    /// that it cannot read, and numbers unless it `has_reach`. Returns `None` if it gets all of
    /// them, or the result exceeds `limit` bytes.
    pub(crate) fn inlined(
        &self,
        is_chunk: bool,
        limit: usize,
        has_reach: bool,
        mut can_read: impl FnMut(&SharedBuf) -> bool,
    ) -> Option<Vec<u8>> {
        let is_apart = has_reach || self.kept().is_none();
        // Looks at all of them, so that the worker has their arenas in the end.
        if self.buffers().fold(is_apart, |all, buffer| all & can_read(buffer)) {
            return None;
        }
        let mut inlined = Vec::new();
        let (mut buffers, kept) = (self.buffers(), self.kept().filter(|_| !has_reach));
        let mut parts = 0..;
        let mut bytes = |segment: &Segment<'_>| match segment {
            Segment::Inline(_) => None,
            Segment::Apart(_) => kept?.part(parts.next()?),
            _ => buffers.next().filter(|buffer| !can_read(buffer)).map(|buffer| &**buffer),
        };
        let mut rest = self.as_bytes();
        if !is_chunk {
            segments::put_in(rest, bytes, &mut inlined, limit).ok()?;
            return Some(inlined);
        }
        while let Some(item) = items::take(&mut rest) {
            let item = item.ok()?;
            let put_in = |into: &mut _| segments::put_in(item, &mut bytes, into, limit);
            items::push_with(&mut inlined, put_in).ok()?;
        }
        Some(inlined)
    }

    /// Returns the argument again, as a copy of its encoded bytes.
    pub(crate) fn copy(&self, arena: Option<&Arc<ArgumentArena>>) -> Self {
        let encoded = Self::of(self.as_bytes().to_vec(), arena);
        let Self::Segmented(segmented) = self else { return encoded };
        let kept = segmented.kept.as_ref().map(|kept| kept.again());
        let buffers = segmented.buffers.clone();
        Self::Segmented(Box::new(SegmentedArgument { encoded, buffers, kept }))
    }
}
