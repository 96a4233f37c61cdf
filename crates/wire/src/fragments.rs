//! Splits messages into fragments, and assembles messages from fragments.
//!
//! A link carries a message in as many fragments as its size requires. The first one declares the
//! length of the message, and the last one is marked. How that is written, each link decides.

use crate::link::LinkError;

/// The part of a message that starts at an offset. Its bytes are `head` and then `payload`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The length of the message, if this is its first fragment.
    pub total: Option<u64>,
    /// `true` if this is the last fragment of the message.
    pub last: bool,
    /// The part of the message's head.
    pub head: &'a [u8],
    /// The part of the message's payload.
    pub payload: &'a [u8],
}

impl<'a> Fragment<'a> {
    /// Returns the fragment of the message `head` + `payload` from `offset` on: all that is left,
    /// but at most `most` bytes.
    ///
    /// # Panics
    /// Panics if the offset lies behind the message.
    #[inline]
    pub fn new(head: &'a [u8], payload: &'a [u8], offset: usize, most: usize) -> Self {
        let total = head.len() + payload.len();
        let length = (total - offset).min(most);
        let from_head = head.get(offset..).unwrap_or_default();
        let from_head = &from_head[..from_head.len().min(length)];
        let start = (offset + from_head.len()).saturating_sub(head.len());
        Self {
            total: (offset == 0).then_some(total as u64),
            last: offset + length == total,
            head: from_head,
            payload: &payload[start..start + length - from_head.len()],
        }
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// Returns `true` if the fragment has no bytes, which only happens in an empty message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Assembles messages from fragments. No memory is allocated for a declared length before the bytes
/// arrive.
#[derive(Debug)]
pub struct Assembly {
    message: Vec<u8>,
    /// The declared length of the message whose fragments are arriving.
    total: Option<usize>,
    /// Maximum number of bytes of a message.
    limit: usize,
}

/// A message's memory is kept for the next one, unless it has grown beyond this. A host keeps as
/// much for each of its links.
const KEPT: usize = 64 << 10;

const WRONG_LENGTH: &str = "message length differs from the declared length";

impl Assembly {
    /// Creates an assembly for messages of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { message: Vec::new(), total: None, limit }
    }

    /// Returns `true` if a message has begun to arrive and is not whole.
    #[inline]
    pub fn is_in_the_middle(&self) -> bool {
        self.total.is_some()
    }

    /// Returns the last message, once it is whole, until the next one begins.
    #[inline]
    pub fn message(&self) -> &[u8] {
        &self.message
    }

    /// Frees the memory of a large message that has been used, unless the next one is arriving.
    #[inline]
    pub fn release(&mut self) {
        if self.total.is_none() && self.message.capacity() > KEPT {
            self.message = Vec::new();
        }
    }

    /// Adds a fragment. Returns `true` if the message is whole now. After an error, the next
    /// fragment must begin a message.
    ///
    /// # Errors
    /// [`LinkError::Protocol`] if the fragment does not fit to those before it.
    pub fn add(&mut self, total: Option<u64>, last: bool, bytes: &[u8]) -> Result<bool, LinkError> {
        match self.reserve(total, last, bytes.len()) {
            Ok(room) => {
                room.copy_from_slice(bytes);
                Ok(last)
            }
            Err(problem) => {
                self.total = None;
                Err(LinkError::Protocol(problem))
            }
        }
    }

    /// Adds a whole message of a few words. Returns an error if it does not fit to what was before
    /// it, or is longer than the words.
    #[inline]
    pub(crate) fn take_words<const N: usize>(
        &mut self,
        words: [u64; N],
        length: usize,
    ) -> Result<(), &'static str> {
        self.begin(length as u64)?;
        self.total = None;
        if length > 8 * N {
            return Err(WRONG_LENGTH);
        }
        self.message.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
        self.message.truncate(length);
        Ok(())
    }

    /// Begins a message of this length.
    #[inline]
    fn begin(&mut self, total: u64) -> Result<(), &'static str> {
        if self.total.is_some() {
            return Err("message begins inside another");
        }
        self.release();
        self.message.clear();
        let fits = usize::try_from(total).ok().filter(|total| *total <= self.limit);
        self.total = Some(fits.ok_or("message exceeds the limit")?);
        Ok(())
    }

    /// Adds a fragment whose bytes the caller writes into the returned slice. `total` is the length
    /// that the first fragment declares. Returns an error if the fragment does not fit to those
    /// before it.
    #[inline]
    pub(crate) fn reserve(
        &mut self,
        total: Option<u64>,
        last: bool,
        length: usize,
    ) -> Result<&mut [u8], &'static str> {
        if let Some(total) = total {
            self.begin(total)?;
        }
        let total = self.total.ok_or("fragment outside a message")?;
        let start = self.message.len();
        if length > total - start || last != (start + length == total) {
            return Err(WRONG_LENGTH);
        }
        if last {
            self.total = None;
        }
        self.message.resize(start + length, 0);
        Ok(&mut self.message[start..])
    }
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_message_in_words_is_taken_unless_it_does_not_fit() {
        let mut assembly = Assembly::new(20);
        let words = [
            u64::from_le_bytes(*b"a messag"),
            u64::from_le_bytes(*b"e\xff\xff\xff\xff\xff\xff\xff"),
        ];
        assert_eq!(assembly.take_words(words, 9), Ok(()));
        assert_eq!((assembly.message(), assembly.is_in_the_middle()), (&b"a message"[..], false));
        assert_eq!(assembly.take_words(words, 17), Err(WRONG_LENGTH));
        assembly.take_words(words, 21).expect_err("beyond the limit");
        assert_eq!(assembly.take_words([], 0), Ok(()));
        assert!(!assembly.add(Some(4), false, b"ab").expect("it fits"));
        assembly.take_words(words, 9).expect_err("inside another message");
    }

    proptest! {
        #[test]
        fn a_message_in_fragments_is_assembled_unchanged(head: Vec<u8>, payload: Vec<u8>, most in 1..50_usize) {
            let mut assembly = Assembly::new(1000);
            let mut offset = 0;
            loop {
                let fragment = Fragment::new(&head, &payload, offset, most);
                prop_assert!(fragment.len() <= most);
                offset += fragment.len();
                let bytes = [fragment.head, fragment.payload].concat();
                if assembly.add(fragment.total, fragment.last, &bytes).expect("a fragment") {
                    break;
                }
                prop_assert!(assembly.is_in_the_middle());
            }
            prop_assert!(!assembly.is_in_the_middle());
            prop_assert_eq!(assembly.message(), [head, payload].concat());
        }

        #[test]
        fn random_fragments_take_no_memory_beyond_their_bytes(
            fragments: Vec<(Option<u64>, bool, Vec<u8>)>,
        ) {
            let mut assembly = Assembly::new(usize::MAX);
            for (total, last, bytes) in &fragments {
                let _ = assembly.add(*total, *last, bytes);
            }
            let sum: usize = fragments.iter().map(|(.., bytes)| bytes.len()).sum();
            prop_assert!(assembly.message.capacity() <= (2 * sum).max(64));
        }
    }

    #[test]
    fn a_used_message_keeps_little_memory() {
        let large = vec![7; 10 * KEPT];
        let mut assembly = Assembly::new(usize::MAX);
        let total = Some(large.len() as u64);
        assert!(!assembly.add(total, false, &large[..KEPT]).expect("the first half"));
        assembly.release();
        assert!(assembly.add(None, true, &large[KEPT..]).expect("the second half"));
        assert_eq!(assembly.message(), large);
        assembly.release();
        assert!(assembly.message.capacity() <= KEPT);
    }

    #[test]
    fn a_message_above_the_limit_is_refused_before_it_arrives() {
        let mut assembly = Assembly::new(10);
        assert!(assembly.add(Some(11), false, &[0]).is_err());
        assert!(assembly.add(Some(2), false, &[0]).is_ok(), "the next message is accepted");
        assert!(assembly.add(None, true, &[0]).expect("the rest"));
    }
}
