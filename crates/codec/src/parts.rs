//! Values whose large [packed](crate::packed) vectors are not among their encoded bytes, so that
//! they are copied once, and to where the decoded value has them.
//!
//! ```text
//! Picture { name, pixels }  --encode-->  name mark   address length unit mark   1      pixels
//!                                        head        table: an entry for each, count   part 0
//! ```
//! The encoded bytes end with a table of the parts. In the head a mark is in the place of each, as
//! the bytes of a vector: a number that nobody can guess. So no other vector is taken for a part,
//! wherever the types of the value put them.
//!
//! A serializer has no room for a context, so the parts are in variables of the thread.

pub(crate) mod scope;
mod table;

use std::any::type_name;

use brigade_sys::numbers::{Numbers, SharedNumbers};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::{decode, decode_here, encode_here};
use crate::contiguous::Form;
use crate::error::{CodecError, MalformedParts, UntakenParts};
use scope::{Outer, Scope, may_have_parts, untaken};
pub use table::{Addresses, Place, Table};

/// Appends the encoded value to `into`, without its large packed vectors, which it puts into
/// `parts`. The encoding ends with a [`Table`] if there are any. The vectors have up to `most`
/// bytes; the [joined](join) encoding has up to `limit`. Without `parts`, this is
/// [`encode`](crate::encode).
///
/// # Errors
/// As [`encode`](crate::encode).
#[inline]
pub fn encode_in_parts<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
    (most, addresses): (usize, Addresses),
    parts: Option<&mut Vec<SharedNumbers>>,
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
            *parts = finish(&scope, addresses, into);
            if Table::of(&into[length..]).is_some_and(|table| table.joined_length() <= limit) {
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

/// Appends the table of the parts.
#[cold]
fn finish(scope: &Scope, addresses: Addresses, into: &mut Vec<u8>) -> Vec<SharedNumbers> {
    let added = scope.take();
    table::append(&added, addresses, into);
    added.into_iter().map(|added| added.part).collect()
}

/// Decodes a value that was encoded in parts, which it takes.
///
/// # Errors
/// [`CodecError::Decode`], also for parts that the value does not take.
pub fn decode_in_parts<T: DeserializeOwned + 'static>(
    encoded: &[u8],
    parts: Vec<Numbers>,
) -> Result<T, CodecError> {
    let type_name = type_name::<T>();
    if Form::of::<T>() != Form::Other {
        // Encoded bytes for others, or no such value.
        return decode(&join(encoded, &parts, type_name)?);
    }
    let (head, _outer) = arrive(encoded, parts).ok_or_else(|| malformed(type_name))?;
    let value = decode_here(head)?;
    match untaken() {
        0 => Ok(value),
        wrong => Err(CodecError::Decode { type_name, source: UntakenParts(wrong).into() }),
    }
}

/// Begins to decode a value that was encoded in parts. Returns its encoding without them; `None`
/// if it has other parts.
fn arrive(encoded: &[u8], parts: Vec<Numbers>) -> Option<(&[u8], Outer)> {
    let table = Table::of(encoded).filter(|table| table.parts.len() == parts.len())?;
    let marks = table.parts.iter().map(|part| part.mark);
    Some((table.head, Outer::hidden_by(marks.zip(parts))))
}

/// Returns a value as it is encoded with its parts.
///
/// # Errors
/// [`CodecError::Decode`] if it has no table, or other parts. It names the type.
pub fn join(
    encoded: &[u8],
    parts: &[impl AsRef<[u8]>],
    type_name: &'static str,
) -> Result<Vec<u8>, CodecError> {
    let joined = Table::of(encoded).and_then(|table| table.join(parts));
    joined.ok_or_else(|| malformed(type_name))
}

fn malformed(type_name: &'static str) -> CodecError {
    CodecError::Decode { type_name, source: MalformedParts.into() }
}

#[cfg(test)]
mod tests;
