//! Encoded items of a task or an outcome, one behind the other.

use bytes::{Buf, Bytes};

use super::MessageError;
use crate::input_hash::input_hash;

/// Maximum number of bytes of items inside a message. Larger messages delay those behind them.
pub(crate) const INLINE_LIMIT: usize = 256 << 10;

/// Most bytes of an encoded length of 32 bits, with 7 bits each.
const LENGTH_LIMIT: u32 = 5;

/// Appends items to a body.
#[derive(Debug, Default)]
pub(crate) struct ItemsBuilder {
    bytes: Vec<u8>,
    count: u32,
}

impl ItemsBuilder {
    pub(crate) fn push(&mut self, item: &[u8]) {
        self.push_parts(&[item]);
    }

    /// Appends one item that consists of several parts.
    pub(crate) fn push_parts(&mut self, parts: &[&[u8]]) {
        let mut length: usize = parts.iter().map(|part| part.len()).sum();
        loop {
            let low = length.to_le_bytes()[0] & 0x7f;
            length >>= 7;
            let more = if length > 0 { 0x80 } else { 0 };
            self.bytes.push(low | more);
            if length == 0 {
                break;
            }
        }
        for part in parts {
            self.bytes.extend_from_slice(part);
        }
        self.count += 1;
    }

    /// Returns the number of items.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(self) -> Items {
        Items { bytes: self.bytes.into() }
    }
}

/// Encoded items. The iterator ends early with an error if the bytes are malformed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Items {
    bytes: Bytes,
}

impl Items {
    /// Takes bytes that were built by [`ItemsBuilder`], perhaps on another machine.
    pub(crate) fn from_bytes(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// Returns `true` if the items are too large for a message.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.len() > INLINE_LIMIT
    }

    /// Returns a hash of each item, up to the first that is malformed.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        self.clone().map_while(Result::ok).map(|item| input_hash(&item)).collect()
    }

    pub(crate) fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Iterator for Items {
    type Item = Result<Bytes, MessageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.bytes.is_empty() {
            return None;
        }
        let item = take(&mut self.bytes);
        if item.is_none() {
            self.bytes.clear();
        }
        Some(item.ok_or_else(|| MessageError::malformed("the items are cut off")))
    }
}

fn take(bytes: &mut Bytes) -> Option<Bytes> {
    let mut length = 0_u64;
    for position in 0..LENGTH_LIMIT {
        let byte = *bytes.first()?;
        bytes.advance(1);
        length |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            let length = usize::try_from(length).ok()?;
            return (length <= bytes.len()).then(|| bytes.split_to(length));
        }
    }
    None
}
