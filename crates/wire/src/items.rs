//! Encodes several values one after the other, each as its length followed by its bytes.
//!
//! The length is one byte, or the byte 255 and then four bytes, little-endian.

use crate::error::MessageError;

/// Lengths from this value on take five bytes.
const LONG: u8 = u8::MAX;

/// Appends the item that `write` produces to `items`. If `write` fails or panics, `items` is left
/// unchanged.
///
/// # Errors
/// Those of `write`.
///
/// # Panics
/// If the item has 4 GiB or more; the limits of messages are lower.
#[inline]
pub fn push_with<E>(
    items: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = items.len();
    items.push(0);
    let mut unfinished = Unfinished { items, start: Some(start) };
    write(unfinished.items)?;
    unfinished.start = None;
    drop(unfinished);
    let length = items.len() - start - 1;
    if let Some(length) = short(length) {
        items[start] = length;
    } else {
        // Only now is it known that the length needs four more bytes.
        #[expect(clippy::expect_used, reason = "a message is shorter than 4 GiB")]
        let length = u32::try_from(length).expect("an item is shorter than 4 GiB").to_le_bytes();
        items.splice(start..=start, std::iter::once(LONG).chain(length));
    }
    Ok(())
}

/// Removes an unfinished item: `write` is user code, which may panic.
struct Unfinished<'a> {
    items: &'a mut Vec<u8>,
    start: Option<usize>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(start) = self.start {
            self.items.truncate(start);
        }
    }
}

/// Appends an item.
///
/// # Errors
/// [`MessageError`] if the item has 4 GiB or more; then nothing is appended.
#[inline]
pub fn push(items: &mut Vec<u8>, bytes: &[u8]) -> Result<(), MessageError> {
    if let Some(length) = short(bytes.len()) {
        items.push(length);
    } else {
        let length = u32::try_from(bytes.len()).map_err(|_| TOO_LONG)?;
        items.push(LONG);
        items.extend_from_slice(&length.to_le_bytes());
    }
    items.extend_from_slice(bytes);
    Ok(())
}

/// Appends a short item that is packed into words.
///
/// # Panics
/// If it has 255 bytes or more.
#[inline]
pub(crate) fn push_words(items: &mut Vec<u8>, length: usize, word: impl Fn(usize) -> u64) {
    #[expect(clippy::expect_used, reason = "the items of a ring have at most 64 bytes")]
    items.push(short(length).expect("a short item"));
    if length == 0 {
        return;
    }
    let end = items.len() + length;
    for index in 0..length.div_ceil(8) {
        items.extend_from_slice(&word(index).to_le_bytes());
    }
    items.truncate(end);
}

const TOO_LONG: MessageError = MessageError::Encode("item of 4 GiB or more");

/// Appends an empty item, which stands for one that is stored elsewhere.
#[inline]
pub fn push_empty(items: &mut Vec<u8>) {
    items.push(0);
}

/// Removes the first item and returns it; `None` at the end.
///
/// # Errors
/// [`MessageError`] if the rest is shorter than the item's declared length; then nothing is
/// removed.
#[inline]
pub fn take<'a>(items: &mut &'a [u8]) -> Option<Result<&'a [u8], MessageError>> {
    let (first, rest) = items.split_first()?;
    let parts = if *first < LONG {
        rest.split_at_checked(usize::from(*first))
    } else {
        rest.split_first_chunk().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
        })
    };
    let Some((item, rest)) = parts else {
        return Some(Err(MessageError::Decode("truncated item")));
    };
    *items = rest;
    Some(Ok(item))
}

/// Returns the number of bytes that the first `count` items take.
#[must_use]
pub fn size(items: &[u8], count: u32) -> usize {
    let mut rest = items;
    for _ in 0..count {
        if !matches!(take(&mut rest), Some(Ok(_))) {
            break;
        }
    }
    items.len() - rest.len()
}

#[inline]
fn short(length: usize) -> Option<u8> {
    u8::try_from(length).ok().filter(|length| *length < LONG)
}

#[cfg(not(loom))]
#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use proptest::prelude::*;

    use super::*;

    fn all(mut items: &[u8]) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| take(&mut items))
            .map(|item| item.expect("an item").to_vec())
            .collect()
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says that it was left out")]
    fn an_item_of_4_gib_is_an_error_and_appends_nothing() {
        // A small machine refuses that, even though nobody reads or writes these pages.
        if Vec::<u8>::new().try_reserve(1 << 32).is_err() {
            println!("left out: needs a machine that grants 4 GiB of memory at once");
            return;
        }
        let long = vec![0; 1 << 32];
        let mut items = vec![1, 7];
        assert!(push(&mut items, &long).is_err());
        assert_eq!(items, [1, 7]);
        push_empty(&mut items);
        assert_eq!(all(&items), [vec![7], vec![]]);
    }

    #[test]
    fn an_item_whose_writing_panics_leaves_no_bytes() {
        let mut items = vec![1, 7];
        let writing = AssertUnwindSafe(|| {
            push_with(&mut items, |items| -> Result<(), ()> {
                items.extend_from_slice(&[1; 600]);
                panic!("on purpose")
            })
        });
        assert!(catch_unwind(writing).is_err());
        assert_eq!(items, [1, 7]);
    }

    proptest! {
        #[test]
        fn decoded_items_equal_the_encoded_ones(
            items in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..600), 0..20),
        ) {
            let (mut pushed, mut written) = (Vec::new(), Vec::new());
            for item in &items {
                push(&mut pushed, item).expect("a short item");
                push_with(&mut written, |items| {
                    items.extend_from_slice(item);
                    Ok::<(), ()>(())
                }).expect("no error");
                let before = written.clone();
                let failed = push_with(&mut written, |items| {
                    items.extend_from_slice(item);
                    Err("no")
                });
                prop_assert_eq!(failed, Err("no"));
                prop_assert_eq!(&written, &before);
            }
            prop_assert_eq!(&pushed, &written);
            prop_assert_eq!(all(&pushed), items);
        }

        #[test]
        fn random_bytes_decode_to_items_or_an_error(bytes: Vec<u8>) {
            let mut rest = bytes.as_slice();
            while let Some(item) = take(&mut rest) {
                if item.is_err() {
                    break;
                }
            }
        }
    }
}
