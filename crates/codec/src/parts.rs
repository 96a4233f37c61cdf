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

use crate::codec::{decode, encode_here};
use crate::contiguous::Form;
use crate::error::{CodecError, MalformedParts, UntakenParts};
pub use scope::Terms;
use scope::{Scope, arriving};
pub use table::{Place, Table};

/// Packed vectors of fewer bytes are not worth a copy of their own.
pub const LEAST: usize = 1 << 20;

/// Appends the encoded value to `into`, without its large packed vectors, which it puts into
/// `parts`. The encoding ends with a [`Table`] if there are any. Together they have up to `limit`
/// bytes. Without `parts`, this is [`encode`](crate::encode).
///
/// # Errors
/// As [`encode`](crate::encode).
#[inline]
pub fn encode_in_parts<T: Serialize + 'static>(
    value: &T,
    into: &mut Vec<u8>,
    limit: usize,
    terms: &'static Terms,
    parts: Option<&mut Vec<SharedNumbers>>,
) -> Result<(), CodecError> {
    let length = into.len();
    let scope = Scope::of::<T>(parts.is_some().then_some(terms));
    encode_here(value, into, limit)?;
    match (scope, parts) {
        // Out of line, and not through the result, so that small values stay as fast.
        (Some(scope), Some(parts)) if !scope.is_empty() => {
            finish::<T>(&scope, terms, into, length, limit).map(|added| *parts = added)
        }
        _ => Ok(()),
    }
}

/// Appends the table of the parts.
#[cold]
fn finish<T>(
    scope: &Scope,
    terms: &Terms,
    into: &mut Vec<u8>,
    length: usize,
    limit: usize,
) -> Result<Vec<SharedNumbers>, CodecError> {
    let added = scope.take();
    let total: usize = added.iter().map(|added| added.part.as_bytes().len()).sum();
    table::append(&added, terms.has_addresses, into);
    if (into.len() - length).saturating_add(total) > limit {
        into.truncate(length);
        return Err(CodecError::TooLarge { type_name: type_name::<T>(), limit });
    }
    let parts: Vec<_> = added.into_iter().map(|added| added.part).collect();
    if parts.len() <= table::MOST && total <= terms.most {
        return Ok(parts);
    }
    let joined = table::read(&into[length..], parts.len());
    let part = |index: usize| parts.get(index).map(SharedNumbers::as_bytes);
    let joined = joined.and_then(|table| table.join(part));
    into.truncate(length);
    into.extend(joined.ok_or_else(|| malformed::<T>())?);
    Ok(Vec::new())
}

/// Decodes a value that was encoded in parts, which it takes.
///
/// # Errors
/// [`CodecError::Decode`], also for parts that the value does not take.
pub fn decode_in_parts<T: DeserializeOwned + 'static>(
    encoded: &[u8],
    parts: Vec<Numbers>,
) -> Result<T, CodecError> {
    if Form::of::<T>() != Form::Other {
        // Encoded bytes for others, or no such value.
        return decode(&join::<T>(encoded, |index| parts.get(index).map(Numbers::as_bytes))?);
    }
    let table = Table::of(encoded).filter(|table| table.parts.len() == parts.len());
    let table = table.ok_or_else(|| malformed::<T>())?;
    let arrived = table.parts.iter().map(|part| part.mark).zip(parts);
    let (value, left) = arriving(arrived, || decode(table.head));
    let value = value?;
    if left == 0 {
        return Ok(value);
    }
    Err(CodecError::Decode { type_name: type_name::<T>(), source: UntakenParts(left).into() })
}

/// Returns a value as it is encoded with its parts.
///
/// # Errors
/// [`CodecError::Decode`] if it has no table, or other parts. It names the type `T`.
pub fn join<'a, T>(
    encoded: &[u8],
    part: impl Fn(usize) -> Option<&'a [u8]>,
) -> Result<Vec<u8>, CodecError> {
    let joined = Table::of(encoded).and_then(|table| table.join(part));
    joined.ok_or_else(|| malformed::<T>())
}

fn malformed<T>() -> CodecError {
    CodecError::Decode { type_name: type_name::<T>(), source: MalformedParts.into() }
}

#[cfg(test)]
mod tests;
