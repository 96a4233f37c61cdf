//! Encodes arguments and values with postcard, up to a limit.
//!
//! The format is [postcard's](https://postcard.jamesmunns.com/wire-format), with exceptions for two
//! kinds of whole values. A vector of integers or floats is the number of its elements, as postcard
//! encodes it, and then the bytes of all elements, the lowest of each first. So it is copied at
//! once, and not number by number through serde; for `Vec<u8>`, as for a `String`, this is
//! postcard's format too. An [`Encoded`] is its bytes, without any prefix.

use std::any::type_name;

use brigade_sys::numbers::{Numbers, Unit};
use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::contiguous::{Form, Prefix, contiguous_parts, from_bytes, from_encoded, reversed_parts};
use crate::error::{CodecError, LeftOver, WrongCount};
use crate::parts::scope::{Outer, Scope, have_arrived, is_open};
use crate::reason;

/// Appends the encoded value to `into`, which grows by at most `limit` bytes.
///
/// Encoding stops as soon as the value exceeds the limit, so it never takes more memory than the
/// limit.
///
/// # Errors
/// [`CodecError::Encode`] and [`CodecError::TooLarge`]; `into` is left unchanged, including its
/// capacity.
#[inline]
pub fn encode<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CodecError> {
    if is_open() { encode_within(value, into, limit) } else { encode_here(value, into, limit) }
}

/// Encodes a value within another one, of which it becomes no part.
#[cold]
fn encode_within<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CodecError> {
    let _scope = Scope::open(0);
    // In the same place of the code as other values, which the compiler puts into the caller.
    encode(value, into, limit)
}

/// Encodes a value. Packed vectors in it may become [parts].
#[inline]
pub(crate) fn encode_here<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
) -> Result<(), CodecError> {
    let (length, capacity) = (into.len(), into.capacity());
    let result = if let Some((prefix, bytes)) = contiguous_parts(value) {
        encode_contiguous(prefix, bytes, into, limit)
    } else if let Some((prefix, numbers)) = reversed_parts(value) {
        encode_contiguous(prefix, numbers.as_bytes(), into, limit)
    } else {
        let is_empty = size_of::<T>() == 0;
        postcard::serialize_with_flavor(value, &mut BoundedVec::new(into, limit, is_empty))
    };
    match result {
        Ok(()) => Ok(()),
        Err(error) => {
            into.truncate(length);
            into.shrink_to(capacity);
            Err(not_encoded(value, error, limit))
        }
    }
}

#[cold]
fn not_encoded<T: Serialize>(value: &T, error: postcard::Error, limit: usize) -> CodecError {
    let type_name = type_name::<T>();
    match error {
        postcard::Error::SerializeBufferFull => CodecError::TooLarge { type_name, limit },
        error => CodecError::Encode { type_name, source: reason::of_encoding(value, error, limit) },
    }
}

/// Returns `true` if this is the serializer of [`encode_here`].
pub(crate) fn is_own<S>() -> bool {
    type_name::<S>() == type_name::<&mut postcard::Serializer<&mut BoundedVec<'_>>>()
}

/// Returns `true` if these are the first bytes of an encoded `Result` that is an `Err`.
///
/// ```
/// use brigade_codec::{encode, is_err};
///
/// let mut bytes = Vec::new();
/// encode(&Err::<u64, _>("no such file".to_owned()), &mut bytes, 1024)?;
/// assert!(is_err(&bytes));
/// # Ok::<(), brigade_codec::CodecError>(())
/// ```
pub fn is_err(bytes: &[u8]) -> bool {
    // The number of the variant, as serde counts those of `Result`.
    bytes.first() == Some(&1)
}

/// Decodes a value that [`encode`] produced.
///
/// # Errors
/// [`CodecError::Decode`], including when bytes are left over.
pub fn decode<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, CodecError> {
    if have_arrived() { decode_within(bytes) } else { decode_here(bytes) }
}

/// Decodes a value within another one, whose parts it does not take.
#[cold]
fn decode_within<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, CodecError> {
    let _outer = Outer::hidden();
    decode(bytes)
}

/// Decodes a value, which takes the [parts](crate::parts) that have arrived.
#[inline]
pub(crate) fn decode_here<T: DeserializeOwned + 'static>(bytes: &[u8]) -> Result<T, CodecError> {
    let wrong = |source| CodecError::Decode { type_name: type_name::<T>(), source };
    let form = Form::of::<T>();
    if form != Form::Other
        && let Some((start, _)) = form.place(bytes, bytes.len())
        && let Some(value) = from_bytes(&bytes[start..])
    {
        return Ok(value);
    }
    if let Form::Numbers(_) = form {
        return Err(wrong(WrongCount(bytes.len()).into()));
    }
    // A text that does not match: the general decoder produces the error.
    let (value, rest) = postcard::take_from_bytes(bytes)
        .map_err(|error| wrong(reason::of_decoding::<T>(bytes, error)))?;
    if rest.is_empty() { Ok(value) } else { Err(wrong(LeftOver(rest.len()).into())) }
}

/// A `Vec` that refuses to grow beyond a limit.
///
/// It is longer than what was written, by zeros that the next bytes replace. So a byte takes a
/// comparison and a store, and the length of the `Vec` changes once per value.
struct BoundedVec<'a> {
    into: &'a mut Vec<u8>,
    /// Length of what was written. [`OVERFLOWED`] once something did not fit: never reset, so that
    /// a `Serialize` that continues after an error cannot produce bytes with a gap.
    written: usize,
    /// Length of the `Vec` that must not be exceeded.
    end: usize,
}

/// No `Vec` has bytes behind this.
const OVERFLOWED: usize = usize::MAX;

impl<'a> BoundedVec<'a> {
    /// Begins a value that may be as large as the limit. `is_empty` values get no room in advance.
    #[inline]
    fn new(into: &'a mut Vec<u8>, limit: usize, is_empty: bool) -> Self {
        let written = into.len();
        if !is_empty && limit >= ROOM {
            if into.capacity() - written >= ROOM {
                into.extend_from_slice(&[0; ROOM]);
            } else if into.capacity() == 0 {
                grow(into, ROOM, limit);
                into.resize(written + ROOM, 0);
            }
        }
        Self { into, written, end: written.saturating_add(limit) }
    }

    /// Appends bytes by value. A reference would keep them in memory, where the bytes of a number
    /// were just written one by one: a processor stalls when it reads several of them at once.
    #[inline]
    fn put<const N: usize>(&mut self, bytes: [u8; N]) -> postcard::Result<()> {
        let room = self.into.get_mut(self.written..).and_then(<[u8]>::first_chunk_mut);
        let Some(room) = room else { return self.make_room_and_put(bytes) };
        *room = bytes;
        self.written += N;
        Ok(())
    }

    #[inline]
    fn put_each<const N: usize>(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.put::<N>(std::array::from_fn(|index| bytes[index]))
    }

    #[cold]
    fn make_room_and_put<const N: usize>(&mut self, bytes: [u8; N]) -> postcard::Result<()> {
        self.make_room_and_put_all(&bytes)
    }

    /// Appends any number of bytes.
    fn put_all(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        let room = self.into.get_mut(self.written..).and_then(|room| room.get_mut(..bytes.len()));
        let Some(room) = room else { return self.make_room_and_put_all(bytes) };
        room.copy_from_slice(bytes);
        self.written += bytes.len();
        Ok(())
    }

    #[cold]
    fn make_room_and_put_all(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.make_room(bytes.len())?;
        self.into.extend_from_slice(bytes);
        self.written = self.into.len();
        let room = (self.into.capacity().min(self.end) - self.written).min(MORE_ROOM);
        self.into.resize(self.written + room, 0);
        Ok(())
    }

    /// Removes the zeros and makes room for `count` bytes.
    fn make_room(&mut self, count: usize) -> postcard::Result<()> {
        self.into.truncate(self.written);
        let left = self.end - self.into.len();
        if self.written == OVERFLOWED || count > left {
            self.written = OVERFLOWED;
            return Err(postcard::Error::SerializeBufferFull);
        }
        if count > self.into.capacity() - self.into.len() {
            // Else what follows something large would double the memory.
            let more = if count >= LARGE { MORE_ROOM } else { 0 };
            grow(self.into, count.saturating_add(more).min(left), left);
        }
        Ok(())
    }
}

/// Makes room for `count` bytes by doubling like a `Vec`, but for no more than `left`.
#[cold]
fn grow(into: &mut Vec<u8>, count: usize, left: usize) {
    let doubled = into.capacity().max(SMALLEST_GROWTH).min(left);
    into.reserve_exact(doubled.max(count));
}

/// By reference: a processor stalls when it moves a structure that was just written in smaller
/// parts.
impl Flavor for &mut BoundedVec<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.put([byte])
    }

    /// A number of up to 64 bits has at most ten bytes. The compiler joins these cases with those
    /// of the number, and its bytes never get to memory.
    #[expect(clippy::inline_always, reason = "else the number gets to memory")]
    #[inline(always)]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        match bytes.len() {
            1 => self.put_each::<1>(bytes),
            2 => self.put_each::<2>(bytes),
            3 => self.put_each::<3>(bytes),
            4 => self.put_each::<4>(bytes),
            5 => self.put_each::<5>(bytes),
            6 => self.put_each::<6>(bytes),
            7 => self.put_each::<7>(bytes),
            8 => self.put_each::<8>(bytes),
            9 => self.put_each::<9>(bytes),
            10 => self.put_each::<10>(bytes),
            _ => self.put_all(bytes),
        }
    }

    #[inline]
    fn finalize(self) -> postcard::Result<()> {
        if self.written == OVERFLOWED {
            return Err(postcard::Error::SerializeBufferFull);
        }
        self.into.truncate(self.written);
        Ok(())
    }
}

/// Most arguments are small, and need no more room than this.
const ROOM: usize = 32;

/// Room for what follows something that did not fit.
const MORE_ROOM: usize = 512;

/// The memory for something of this size is not doubled for the little that follows.
const LARGE: usize = 64 << 10;

/// With a smaller first step, the encoding of a small argument would be a chain of reallocations.
const SMALLEST_GROWTH: usize = 64;

fn encode_contiguous(
    prefix: Prefix,
    bytes: &[u8],
    into: &mut Vec<u8>,
    limit: usize,
) -> postcard::Result<()> {
    let mut bounded = BoundedVec::new(into, limit, true);
    // Length and bytes take one allocation; a value that does not fit allocates nothing.
    bounded.make_room(bytes.len().saturating_add(prefix.as_slice().len()))?;
    into.extend_from_slice(prefix.as_slice());
    into.extend_from_slice(bytes);
    Ok(())
}

/// Encoded bytes that must be copied before use, because another process may change them at any
/// time.
pub trait Source {
    /// Returns the number of bytes.
    fn len(&self) -> usize;
    /// Copies numbers from position `at` on, of `length` bytes together. Returns `None` if the last
    /// one would not be whole.
    ///
    /// # Panics
    /// If the range exceeds the bytes.
    fn copy(&self, at: usize, length: usize, unit: Unit) -> Option<Numbers>;
    /// Returns `true` if there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Decodes a value like [`decode`], but copies the bytes only once: those of a vector of numbers or
/// of a `String` directly to their destination.
///
/// # Errors
/// Like `decode`.
pub fn decode_from<T: DeserializeOwned + 'static>(source: &impl Source) -> Result<T, CodecError> {
    let copy = |at, length, unit| source.copy(at, length, unit).unwrap_or_default();
    let form = Form::of::<T>();
    if form != Form::Other {
        let first = copy(0, source.len().min(Prefix::MAX), Unit::BYTE);
        if let Some((start, unit)) = form.place(first.as_bytes(), source.len())
            && let Some(value) = from_encoded(copy(start, source.len() - start, unit))
        {
            return Ok(value);
        }
    }
    decode(copy(0, source.len(), Unit::BYTE).as_bytes())
}

#[cfg(test)]
mod tests;
