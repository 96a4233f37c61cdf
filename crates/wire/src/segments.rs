//! The list of segments behind an encoded argument or value: what it refers to, and what does not
//! lie among its bytes.
//!
//! ```text
//! encoded | bytes of inline buffers | an entry of five words for each segment | number of segments
//! ```
//! The words are in little-endian. An entry of a shared buffer holds: the kind; offset; length;
//! inode; size of the file. One of numbers that are [apart](Apart) holds: the kind, and from bit 8
//! on the size of a number; address; length; the two words of their mark. Words that a kind does
//! not use are 0.
//!
//! The list stands at the end because the segments are known once the value is encoded. It is a
//! part of the payload because it travels with it: into the arena of arguments, and with an item
//! into another chunk.

use std::any::type_name;

use brigade_codec::parts::join;
use brigade_sys::arena::ArenaRef;
use brigade_sys::numbers::{Mark, SharedNumbers, Unit};

use crate::error::MessageError;
use crate::location::Location;

/// Maximum number of segments in one argument or value.
pub const MAX: usize = 4096;

/// A segment in a message: a shared buffer as its bytes or where they lie, or numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment<'a> {
    /// The bytes of a buffer.
    Inline(&'a [u8]),
    /// A buffer in the pool's arena of arguments.
    Argument(Location),
    /// A buffer in the arena of results of the worker that sends the message.
    Result(Location),
    /// A buffer in the arena of another worker, whose descriptor the host has sent before, or in
    /// the receiver's own.
    Foreign(ArenaRef, Location),
    /// Numbers that the host copies from process to process.
    Apart(Apart),
}

/// Numbers that are [apart](brigade_codec::parts) from the encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Apart {
    /// Their mark in the encoding.
    pub mark: Mark,
    /// Their address in the worker that sends the message; 0 if the host sends it.
    pub address: u64,
    /// Their number of bytes.
    pub length: usize,
    /// The size of a number.
    pub unit: Unit,
}

/// The segments behind an encoding, in order. The index of a shared buffer counts buffers only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments<'a> {
    /// Bytes of the inline buffers that are left.
    inline: &'a [u8],
    entries: &'a [[u8; ENTRY]],
}

const WORD: usize = size_of::<u64>();
const ENTRY: usize = 5 * WORD;

const INLINE: u64 = 1;
const ARGUMENT: u64 = 2;
const RESULT: u64 = 3;
const FOREIGN: u64 = 4;
const APART: u64 = 5;

/// The position of the size of a number in the first word of an entry.
const UNIT_SHIFT: u32 = 8;

impl Apart {
    /// Returns the segment of numbers in this process.
    pub fn of(mark: Mark, numbers: &SharedNumbers, is_named: bool) -> Self {
        let bytes = numbers.as_bytes();
        let address = if is_named { bytes.as_ptr().expose_provenance() as u64 } else { 0 };
        Self { mark, address, length: bytes.len(), unit: numbers.unit() }
    }
}

impl Segment<'_> {
    /// Returns the numbers, if it is no shared buffer.
    pub fn apart(self) -> Option<Apart> {
        if let Self::Apart(apart) = self { Some(apart) } else { None }
    }
}

/// Appends the list of `segments` to an encoded argument or value, in at most `room` bytes.
///
/// # Errors
/// [`MessageError::Encode`] if there are more than [`MAX`] segments or the list needs more room;
/// then nothing is appended.
pub fn append(
    into: &mut Vec<u8>,
    segments: &[Segment<'_>],
    room: usize,
) -> Result<(), MessageError> {
    if segments.len() > MAX {
        return Err(MessageError::Encode("more than 4096 shared buffers in one argument or value"));
    }
    let inline = segments.iter().map(|segment| match segment {
        Segment::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    let size = inline.fold(segments.len() * ENTRY + WORD, usize::saturating_add);
    if size > room {
        return Err(MessageError::Encode(
            "the shared buffers that are copied into it exceed the limit of one message \
             (`message_limit`)",
        ));
    }
    into.reserve_exact(size);
    for segment in segments {
        if let Segment::Inline(bytes) = segment {
            into.extend_from_slice(bytes);
        }
    }
    for segment in segments {
        for word in entry(segment) {
            into.extend_from_slice(&word.to_le_bytes());
        }
    }
    into.extend_from_slice(&(segments.len() as u64).to_le_bytes());
    Ok(())
}

/// Splits an argument or value into its encoding and the segments behind it. All entries are
/// well-formed then; the caller has to check that the memory exists.
///
/// # Errors
/// [`MessageError::Decode`] if no list of segments stands at the end of `bytes`.
pub fn split(bytes: &[u8]) -> Result<(&[u8], Segments<'_>), MessageError> {
    let (rest, count) = bytes.split_last_chunk::<WORD>().ok_or(CUT_OFF)?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count <= MAX);
    let count = count.ok_or(MessageError::Decode("too many segments"))?;
    let start = rest.len().checked_sub(count * ENTRY).ok_or(CUT_OFF)?;
    let (rest, entries) = rest.split_at(start);
    let (entries, _) = entries.as_chunks();
    let mut inline = 0_usize;
    for entry in entries {
        inline = inline.checked_add(inline_length(entry)?).ok_or(CUT_OFF)?;
    }
    let (encoded, inline) = rest.split_at(rest.len().checked_sub(inline).ok_or(CUT_OFF)?);
    Ok((encoded, Segments { inline, entries }))
}

const CUT_OFF: MessageError = MessageError::Decode("truncated list of segments");

/// Appends an argument or value to `into`, which contains those of its segments for which `bytes`
/// returns their bytes. The list of the others, perhaps of none, stands behind it.
///
/// # Errors
/// [`MessageError`] if it has no list or other numbers, or `into` would exceed `room` because of
/// the list.
pub fn put_in<'a>(
    payload: &'a [u8],
    mut bytes: impl FnMut(&Segment<'a>) -> Option<&'a [u8]>,
    into: &mut Vec<u8>,
    room: usize,
) -> Result<(), MessageError> {
    let (encoded, list) = split(payload)?;
    let (mut parts, mut left) = (Vec::new(), Vec::new());
    for segment in list {
        match (segment, bytes(&segment)) {
            (Segment::Apart(apart), Some(bytes)) => parts.push((apart.mark, bytes)),
            (_, Some(bytes)) => left.push(Segment::Inline(bytes)),
            (segment, None) => left.push(segment),
        }
    }
    if parts.is_empty() {
        into.extend_from_slice(encoded);
    } else {
        let joined = join(encoded, &parts, type_name::<Apart>());
        into.extend_from_slice(&joined.map_err(|_| WRONG_NUMBERS)?);
    }
    // What fits without its segments fits with an empty list, for which links have room.
    append(into, &left, room.saturating_sub(into.len()).max(WORD))
}

const WRONG_NUMBERS: MessageError = MessageError::Decode("numbers that are not in the encoding");

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, rest) = self.entries.split_first()?;
        self.entries = rest;
        let [first, offset, length, inode, file_length] = words(entry);
        let location = Location { offset, length };
        // `split` has checked kinds and lengths.
        Some(match first {
            ARGUMENT => Segment::Argument(location),
            RESULT => Segment::Result(location),
            FOREIGN => Segment::Foreign(ArenaRef { inode, length: file_length }, location),
            INLINE => {
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.inline.len());
                let (bytes, rest) = self.inline.split_at(length);
                self.inline = rest;
                Segment::Inline(bytes)
            }
            _ => Segment::Apart(apart(entry)?),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Segments<'_> {}

fn entry(segment: &Segment<'_>) -> [u64; 5] {
    match *segment {
        Segment::Inline(bytes) => [INLINE, 0, bytes.len() as u64, 0, 0],
        Segment::Argument(Location { offset, length }) => [ARGUMENT, offset, length, 0, 0],
        Segment::Result(Location { offset, length }) => [RESULT, offset, length, 0, 0],
        Segment::Foreign(arena, Location { offset, length }) => {
            [FOREIGN, offset, length, arena.inode, arena.length]
        }
        Segment::Apart(Apart { mark, address, length, unit }) => {
            let first = APART | u64::from(unit.get()) << UNIT_SHIFT;
            let mark = mark.as_chunks::<WORD>().0;
            let [low, high] = [0, 1].map(|half| u64::from_le_bytes(mark[half]));
            [first, address, length as u64, low, high]
        }
    }
}

/// Returns the numbers of an entry; `None` for other kinds, and if the last one is not whole.
fn apart(entry: &[u8; ENTRY]) -> Option<Apart> {
    let [first, address, length, ..] = words(entry);
    let (length, mark) = (usize::try_from(length).ok()?, *entry.last_chunk()?);
    let unit = Unit::new(u8::try_from(first >> UNIT_SHIFT).ok()?)?;
    unit.count(length).filter(|_| first & ((1 << UNIT_SHIFT) - 1) == APART)?;
    Some(Apart { mark, address, length, unit })
}

/// Returns the number of inline bytes that belong to an entry.
fn inline_length(entry: &[u8; ENTRY]) -> Result<usize, MessageError> {
    match words(entry) {
        [INLINE, 0, length, 0, 0] => usize::try_from(length).map_err(|_| CUT_OFF),
        [ARGUMENT | RESULT, _, _, 0, 0] | [FOREIGN, ..] => Ok(0),
        _ if apart(entry).is_some() => Ok(0),
        _ => Err(MessageError::Decode("unknown kind of segment")),
    }
}

fn words(entry: &[u8; ENTRY]) -> [u64; 5] {
    let mut words = [0; 5];
    for (word, bytes) in words.iter_mut().zip(entry.as_chunks::<WORD>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests;
