//! The table of the parts at the end of an encoded value.

use brigade_sys::numbers::Unit;

use super::scope::{Added, MAX_PARTS, Mark};
use crate::contiguous::Prefix;

/// An address, a length, a unit and a mark.
const ENTRY: usize = 3 * 8 + size_of::<Mark>();

/// The end of the bytes of a value that was encoded in parts, and the bytes before.
#[derive(Debug)]
pub struct Table<'a> {
    pub(super) head: &'a [u8],
    /// The parts, in the order of their marks.
    pub parts: Vec<Place>,
}

/// Says whether a table names the addresses of the parts in this process. If not, they are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// For a process that reads them.
    Named,
    /// For a process that need not know them.
    Hidden,
}

/// The place of a part in the process that has encoded the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its address, or 0.
    pub address: u64,
    /// Its number of bytes.
    pub length: usize,
    /// The size of a number.
    pub unit: Unit,
    pub(super) mark: Mark,
}

impl<'a> Table<'a> {
    /// The most bytes of a table and of the marks.
    pub const MAX_BYTES: usize = MAX_PARTS * (ENTRY + 1 + size_of::<Mark>()) + 8;

    /// Finds the table of an encoded value. Returns `None` if there is none, and for more parts or
    /// other numbers than there can be.
    pub fn of(encoded: &'a [u8]) -> Option<Self> {
        let (rest, count) = encoded.split_last_chunk()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let length = (1..=MAX_PARTS).contains(&count).then(|| count * ENTRY)?;
        let (head, entries) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
        let parts = entries.chunks_exact(ENTRY).map(Place::read).collect::<Option<_>>()?;
        Some(Self { head, parts })
    }

    /// Returns the number of bytes of the value when it is encoded with its parts.
    pub fn joined_length(&self) -> usize {
        let marks = self.parts.len() * (1 + size_of::<Mark>());
        let lengths =
            self.parts.iter().map(|part| Prefix::of(part.length).as_slice().len() + part.length);
        lengths.fold(self.head.len().saturating_sub(marks), usize::saturating_add)
    }

    /// Returns the value as it is encoded with its parts; `None` if these are others.
    pub(super) fn join(&self, parts: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
        if parts.len() != self.parts.len() {
            return None;
        }
        let total: usize = parts.iter().map(|part| part.as_ref().len()).sum();
        let mut joined = Vec::with_capacity(self.head.len() + total);
        let mut rest = self.head;
        for (Place { mark, .. }, part) in self.parts.iter().zip(parts) {
            let at = rest.windows(mark.len()).position(|bytes| bytes == mark)?;
            // The byte before a mark is its length.
            joined.extend_from_slice(&rest[..at.checked_sub(1)?]);
            joined.extend_from_slice(Prefix::of(part.as_ref().len()).as_slice());
            joined.extend_from_slice(part.as_ref());
            rest = &rest[at + mark.len()..];
        }
        joined.extend_from_slice(rest);
        Some(joined)
    }
}

/// Appends a table.
pub(super) fn append(added: &[Added], addresses: Addresses, into: &mut Vec<u8>) {
    for Added { mark, part } in added {
        let bytes = part.as_bytes();
        let address = match addresses {
            Addresses::Named => bytes.as_ptr().expose_provenance(),
            Addresses::Hidden => 0,
        };
        for word in [address as u64, bytes.len() as u64, part.unit().get().into()] {
            into.extend_from_slice(&word.to_le_bytes());
        }
        into.extend_from_slice(mark);
    }
    into.extend_from_slice(&(added.len() as u64).to_le_bytes());
}

impl Place {
    fn read(entry: &[u8]) -> Option<Self> {
        let (words, mark) = entry.split_last_chunk()?;
        let word = |index: usize| Some(u64::from_le_bytes(*words.get(8 * index..)?.first_chunk()?));
        let (address, length) = (word(0)?, usize::try_from(word(1)?).ok()?);
        let unit = Unit::new(u8::try_from(word(2)?).ok()?)?;
        unit.count(length)?;
        Some(Self { address, length, unit, mark: *mark })
    }
}
