//! The list of shared buffers behind an encoded argument or value.
//!
//! ```text
//! encoded | bytes of inline buffers | an entry of five words for each buffer | number of buffers
//! ```
//! The words are in little-endian. An entry holds: the kind; offset; length; inode; size of the
//! file. Words that a kind does not use are 0.
//!
//! The list stands at the end because the buffers are known once the value is encoded. It is a part
//! of the payload because it travels with it: into the arena of arguments, and with an item into
//! another chunk.

use crate::error::MessageError;
use crate::location::Location;

/// Maximum number of buffers in one argument or value.
pub const MAX: usize = 4096;

/// A shared buffer in a message: its bytes, or where they lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer<'a> {
    /// The bytes themselves.
    Inline(&'a [u8]),
    /// A block in the pool's arena of arguments.
    Argument(Location),
    /// A block in the arena of results of the worker that sends the message.
    Result(Location),
    /// A block in another file of shared memory.
    Foreign(File, Location),
}

/// A file of shared memory whose descriptor the host has sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    /// The inode of the file.
    pub inode: u64,
    /// The size of the file in bytes.
    pub size: u64,
}

/// The buffers behind a decoded argument or value, in the order of their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffers<'a> {
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

/// Appends the list of `buffers` to an encoded argument or value, in at most `room` bytes.
///
/// # Errors
/// [`MessageError::Encode`] if there are more than [`MAX`] buffers or the list needs more room;
/// then nothing is appended.
pub fn append(into: &mut Vec<u8>, buffers: &[Buffer<'_>], room: usize) -> Result<(), MessageError> {
    if buffers.len() > MAX {
        return Err(MessageError::Encode("more than 4096 shared buffers in one argument or value"));
    }
    let inline = buffers.iter().map(|buffer| match buffer {
        Buffer::Inline(bytes) => bytes.len(),
        _ => 0,
    });
    let size = inline.fold(buffers.len() * ENTRY + WORD, usize::saturating_add);
    if size > room {
        return Err(MessageError::Encode(
            "the shared buffers that are copied into it exceed the limit of one message \
             (`message_limit`)",
        ));
    }
    into.reserve_exact(size);
    for buffer in buffers {
        if let Buffer::Inline(bytes) = buffer {
            into.extend_from_slice(bytes);
        }
    }
    for buffer in buffers {
        for word in entry(buffer) {
            into.extend_from_slice(&word.to_le_bytes());
        }
    }
    into.extend_from_slice(&(buffers.len() as u64).to_le_bytes());
    Ok(())
}

/// Splits an argument or value into its encoding and the buffers behind it. All entries are
/// well-formed then; the caller has to check that the blocks exist.
///
/// # Errors
/// [`MessageError::Decode`] if no list of buffers stands at the end of `bytes`.
pub fn split(bytes: &[u8]) -> Result<(&[u8], Buffers<'_>), MessageError> {
    let (rest, count) = bytes.split_last_chunk::<WORD>().ok_or(CUT_OFF)?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok().filter(|count| *count <= MAX);
    let count = count.ok_or(MessageError::Decode("too many shared buffers"))?;
    let start = rest.len().checked_sub(count * ENTRY).ok_or(CUT_OFF)?;
    let (rest, entries) = rest.split_at(start);
    let (entries, _) = entries.as_chunks();
    let mut inline = 0_usize;
    for entry in entries {
        inline = inline.checked_add(inline_length(entry)?).ok_or(CUT_OFF)?;
    }
    let (encoded, inline) = rest.split_at(rest.len().checked_sub(inline).ok_or(CUT_OFF)?);
    Ok((encoded, Buffers { inline, entries }))
}

const CUT_OFF: MessageError = MessageError::Decode("truncated list of shared buffers");

impl<'a> Iterator for Buffers<'a> {
    type Item = Buffer<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, rest) = self.entries.split_first()?;
        self.entries = rest;
        let [first, offset, length, inode, size] = words(entry);
        let location = Location { offset, length };
        Some(match first {
            ARGUMENT => Buffer::Argument(location),
            RESULT => Buffer::Result(location),
            FOREIGN => Buffer::Foreign(File { inode, size }, location),
            // `split` has checked kinds and lengths.
            _ => {
                let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.inline.len());
                let (bytes, rest) = self.inline.split_at(length);
                self.inline = rest;
                Buffer::Inline(bytes)
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.entries.len(), Some(self.entries.len()))
    }
}

impl ExactSizeIterator for Buffers<'_> {}

fn entry(buffer: &Buffer<'_>) -> [u64; 5] {
    match *buffer {
        Buffer::Inline(bytes) => [INLINE, 0, bytes.len() as u64, 0, 0],
        Buffer::Argument(Location { offset, length }) => [ARGUMENT, offset, length, 0, 0],
        Buffer::Result(Location { offset, length }) => [RESULT, offset, length, 0, 0],
        Buffer::Foreign(File { inode, size }, Location { offset, length }) => {
            [FOREIGN, offset, length, inode, size]
        }
    }
}

/// Returns the number of inline bytes that belong to an entry.
fn inline_length(entry: &[u8; ENTRY]) -> Result<usize, MessageError> {
    match words(entry) {
        [INLINE, 0, length, 0, 0] => usize::try_from(length).map_err(|_| CUT_OFF),
        [ARGUMENT | RESULT, _, _, 0, 0] | [FOREIGN, ..] => Ok(0),
        _ => Err(MessageError::Decode("unknown kind of shared buffer")),
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn locations() -> impl Strategy<Value = Location> {
        any::<(u64, u64)>().prop_map(|(offset, length)| Location { offset, length })
    }

    /// The buffers of a list, with their inline bytes.
    #[derive(Debug, Clone)]
    enum Owned {
        Inline(Vec<u8>),
        Other(Buffer<'static>),
    }

    impl Owned {
        fn as_buffer(&self) -> Buffer<'_> {
            match self {
                Self::Inline(bytes) => Buffer::Inline(bytes),
                Self::Other(buffer) => *buffer,
            }
        }
    }

    fn buffers() -> impl Strategy<Value = Owned> {
        prop_oneof![
            any::<Vec<u8>>().prop_map(Owned::Inline),
            locations().prop_map(|it| Owned::Other(Buffer::Argument(it))),
            locations().prop_map(|it| Owned::Other(Buffer::Result(it))),
            (any::<(u64, u64)>(), locations()).prop_map(|((inode, size), it)| {
                Owned::Other(Buffer::Foreign(File { inode, size }, it))
            }),
        ]
    }

    proptest! {
        #[test]
        fn split_lists_are_the_appended_ones_and_truncated_ones_less(
            encoded: Vec<u8>, list in proptest::collection::vec(buffers(), 0..8),
        ) {
            let list: Vec<_> = list.iter().map(Owned::as_buffer).collect();
            let mut bytes = encoded.clone();
            append(&mut bytes, &list, usize::MAX).expect("room");
            let size = bytes.len() - encoded.len();
            let mut bounded = encoded.clone();
            prop_assert!(append(&mut bounded, &list, size - 1).is_err());
            prop_assert_eq!(&bounded, &encoded);
            prop_assert_eq!(append(&mut bounded, &list, size), Ok(()));
            prop_assert_eq!(&bounded, &bytes);

            let (split_off, found) = split(&bytes).expect("a list");
            prop_assert_eq!(split_off, encoded);
            prop_assert_eq!(found.len(), list.len());
            prop_assert_eq!(found.collect::<Vec<_>>(), list);
            for cut in 0..bytes.len() {
                if let Ok((encoded, found)) = split(&bytes[..cut]) {
                    prop_assert!(encoded.len() + found.map(size_of_inline).sum::<usize>() < cut);
                }
            }
        }

        #[test]
        fn random_lists_hold_no_more_than_their_bytes(
            mut bytes: Vec<u8>, entries in proptest::collection::vec(any::<[u64; 5]>(), 0..4),
            kinds in proptest::collection::vec(0..6_u64, 4), spoil in any::<bool>(),
        ) {
            for (mut entry, kind) in entries.iter().copied().zip(&kinds) {
                entry[0] = if spoil { entry[0] } else { *kind };
                bytes.extend(entry.iter().flat_map(|word| word.to_le_bytes()));
            }
            bytes.extend((entries.len() as u64).to_le_bytes());
            if let Ok((encoded, found)) = split(&bytes) {
                prop_assert_eq!(found.len(), entries.len());
                prop_assert!(encoded.len() + found.map(size_of_inline).sum::<usize>() < bytes.len());
            }
        }
    }

    fn size_of_inline(buffer: Buffer<'_>) -> usize {
        if let Buffer::Inline(bytes) = buffer { bytes.len() } else { 0 }
    }

    #[test]
    fn lengths_that_overflow_are_an_error() {
        let mut bytes = Vec::new();
        for length in [u64::MAX, 2] {
            bytes.extend([INLINE, 0, length, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
        }
        bytes.extend(2_u64.to_le_bytes());
        assert!(split(&bytes).is_err());
    }

    #[test]
    fn too_many_buffers_are_neither_sent_nor_received() {
        let mut bytes = Vec::new();
        append(&mut bytes, &vec![Buffer::Inline(&[]); MAX], usize::MAX).expect("room");
        assert_eq!(split(&bytes).map(|(_, found)| found.len()), Ok(MAX));
        let mut more = Vec::new();
        let error = append(&mut more, &vec![Buffer::Inline(&[]); MAX + 1], usize::MAX).unwrap_err();
        assert!(error.to_string().contains("4096"), "{error}");
        let mut lie = vec![0; (MAX + 1) * ENTRY];
        lie.extend((MAX as u64 + 1).to_le_bytes());
        assert!(split(&lie).is_err());
        assert!(split(&u64::MAX.to_le_bytes()).is_err());
    }
}
