//! Values whose large vectors are apart from their encoded bytes, so that they are copied once, and
//! to where the decoded value has them.
//!
//! ```text
//! Picture { name, pixels }  --encode-->  name mark    and    mark: pixels
//! Vec<f32>                               count        and    MARK_OF_END: its numbers
//!                                        head                parts
//! ```
//! In the head a mark is in the place of each [packed](crate::packed) vector, as its bytes: a
//! number that nobody can guess. So no other vector is taken for a part, wherever the types of the
//! value put them. A value that is a vector, a `String` or encoded bytes has one part, which
//! follows the head.
//!
//! A serializer has no room for a context, so the parts are in variables of the thread.

pub(crate) mod scope;

use std::any::type_name;
use std::borrow::Cow;

use brigade_sys::numbers::{Mark, Numbers, SharedNumbers};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{decode, decode_here, encode_here};
use crate::contiguous::{Form, Prefix, from_numbers};
use crate::error::{CodecError, MalformedParts, UntakenParts};
use scope::{Outer, Scope, may_have_parts, untaken};

/// A value has no more parts.
pub const MAX_PARTS: usize = 64;

/// The mark of a part that follows the head and is not named in it.
pub const MARK_OF_END: Mark = [0; 16];

/// Appends the encoded value to `into`, without its large packed vectors, which it puts into
/// `parts`. The vectors have up to `most` bytes; the [joined](join) encoding has up to `limit`.
/// Without `parts`, this is [`encode`](crate::encode).
///
/// # Errors
/// As [`encode`](crate::encode).
#[inline]
pub fn encode_in_parts<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
    most: usize,
    parts: Option<&mut Vec<(Mark, SharedNumbers)>>,
) -> Result<(), CodecError> {
    if !may_have_parts::<T>() {
        return crate::encode(value, into, limit);
    }
    let (length, capacity) = (into.len(), into.capacity());
    let scope = Scope::open(if parts.is_some() { most.min(limit) } else { 0 });
    encode_here(value, into, limit)?;
    match parts {
        // Out of line, and not through the result, so that small values stay as fast.
        Some(parts) if !scope.is_empty() => {
            *parts = scope.take();
            let lengths = parts.iter().map(|(mark, part)| (*mark, part.as_bytes().len()));
            if joined_length(into.len() - length, lengths) <= limit {
                return Ok(());
            }
            parts.clear();
            into.truncate(length);
            into.shrink_to(capacity);
            Err(CodecError::TooLarge { type_name: type_name::<T>(), limit })
        }
        _ => Ok(()),
    }
}

/// Decodes a value that was encoded in parts, which it takes. A vector of numbers of the size of
/// those in the part, a `String` and an [`Encoded`](crate::Encoded) have the memory of their part.
///
/// # Errors
/// [`CodecError::Decode`], also for parts that the value does not take.
pub fn decode_in_parts<T: DeserializeOwned + 'static>(
    head: &[u8],
    mut parts: Vec<(Mark, Numbers)>,
) -> Result<T, CodecError> {
    let form = Form::of::<T>();
    if let [(MARK_OF_END, _)] = parts[..]
        && head.is_empty() == (form == Form::Encoded)
        && let Some((mark, numbers)) = parts.pop()
    {
        match from_numbers(numbers) {
            Ok(value) => return Ok(value),
            Err(numbers) => parts.push((mark, numbers)),
        }
    }
    let is_marked = parts.iter().all(|(mark, _)| *mark != MARK_OF_END);
    if form != Form::Other || !is_marked {
        // Encoded bytes for others, or no such value.
        return decode(&join(head, &parts, type_name::<T>())?);
    }
    let _outer = Outer::hidden_by(parts.into_iter());
    let value = decode_here(head)?;
    match untaken() {
        0 => Ok(value),
        wrong => {
            let (type_name, source) = (type_name::<T>(), UntakenParts(wrong).into());
            Err(CodecError::Decode { type_name, source })
        }
    }
}

/// Returns the number of bytes of a value when it is encoded with its parts, from that of the head
/// and those of the parts.
pub fn joined_length(head: usize, parts: impl Iterator<Item = (Mark, usize)>) -> usize {
    parts.fold(head, |sum, (mark, length)| {
        let sum = if mark == MARK_OF_END {
            sum
        } else {
            sum.saturating_sub(1 + mark.len()).saturating_add(Prefix::of(length).as_slice().len())
        };
        sum.saturating_add(length)
    })
}

/// Returns a value as it is encoded with its parts.
///
/// # Errors
/// [`CodecError::Decode`] if it has other parts. It names the type.
pub fn join<'a>(
    head: &[u8],
    parts: &'a [(Mark, impl AsRef<[u8]>)],
    type_name: &'static str,
) -> Result<Cow<'a, [u8]>, CodecError> {
    if let ([], [(MARK_OF_END, whole)]) = (head, parts) {
        return Ok(Cow::Borrowed(whole.as_ref()));
    }
    let total: usize = parts.iter().map(|(_, part)| part.as_ref().len()).sum();
    let mut joined = Vec::with_capacity(head.len() + total);
    let mut rest = head;
    for (mark, part) in parts {
        let part = part.as_ref();
        if *mark == MARK_OF_END {
            joined.extend_from_slice(std::mem::take(&mut rest));
        } else {
            let at = rest.windows(mark.len()).position(|bytes| bytes == mark);
            // The byte before a mark is its length.
            let before = at
                .and_then(|at| at.checked_sub(1))
                .ok_or_else(|| CodecError::Decode { type_name, source: MalformedParts.into() })?;
            joined.extend_from_slice(&rest[..before]);
            joined.extend_from_slice(Prefix::of(part.len()).as_slice());
            rest = &rest[before + 1 + mark.len()..];
        }
        joined.extend_from_slice(part);
    }
    joined.extend_from_slice(rest);
    Ok(Cow::Owned(joined))
}

#[cfg(test)]
mod tests;
