//! Large arguments that the host keeps, and copies to the worker that begins the task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{MOST_OFFERED, OFFERED};
use brigade_wire::Kept;
use brigade_wire::codec;

/// The bytes of a `Vec<u8>`, `String` or `Encoded`, in the memory of the caller's value.
#[derive(Debug)]
pub struct KeptArgument {
    bytes: Arc<KeptBytes>,
    /// The encoded argument begins with the number of the bytes.
    is_counted: bool,
    /// The encoded argument, for a worker that has no arena.
    encoded: OnceLock<Vec<u8>>,
}

/// The bytes of an argument that the host keeps.
#[derive(Debug)]
pub struct KeptBytes {
    bytes: Vec<u8>,
    /// The worker that was sent the task last has not got them. Changed under the core's lock.
    is_owed: AtomicBool,
}

impl KeptBytes {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn is_owed(&self) -> bool {
        self.is_owed.load(Ordering::Relaxed)
    }

    /// Notes that the worker has got them.
    pub(crate) fn delivered(&self) {
        self.is_owed.store(false, Ordering::Relaxed);
    }
}

impl KeptArgument {
    /// Returns `true` if an argument is worth keeping.
    #[inline]
    pub(crate) fn suits<A: 'static>(argument: &A, limit: usize) -> bool {
        codec::contiguous_parts(argument).is_some_and(|(prefix, bytes)| {
            (OFFERED..=MOST_OFFERED).contains(&bytes.len())
                && bytes.len().saturating_add(prefix.as_slice().len()) <= limit
        })
    }

    /// Takes the memory of an argument that [suits](Self::suits).
    pub(crate) fn take<A: 'static>(argument: A) -> Self {
        let prefix = codec::contiguous_parts(&argument).map(|(prefix, _)| prefix);
        let is_counted = prefix.is_some_and(|prefix| !prefix.as_slice().is_empty());
        let bytes = codec::into_bytes(argument).unwrap_or_default();
        let bytes = Arc::new(KeptBytes { bytes, is_owed: AtomicBool::new(false) });
        Self { bytes, is_counted, encoded: OnceLock::new() }
    }

    /// Returns another owner of the bytes.
    pub(crate) fn bytes(&self) -> Arc<KeptBytes> {
        Arc::clone(&self.bytes)
    }

    /// Returns the number of the bytes, as the message names it that sends the task. Its worker may
    /// ask for them once.
    pub(crate) fn send(&self) -> Kept {
        self.bytes.is_owed.store(true, Ordering::Relaxed);
        Kept { length: self.bytes.as_slice().len() as u64, is_counted: self.is_counted }
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.bytes.capacity()
    }

    /// Returns the encoded argument, which is a copy if the bytes are counted.
    pub(super) fn encoded(&self) -> &[u8] {
        if !self.is_counted {
            return self.bytes.as_slice();
        }
        self.encoded.get_or_init(|| {
            let mut encoded = Vec::new();
            // It has no limit, and is no error for bytes.
            let _ = codec::encode(&self.bytes.bytes, &mut encoded, usize::MAX);
            encoded
        })
    }

    /// Returns the argument again, after its task was not accepted and was dropped.
    ///
    /// # Panics
    /// If the bytes were not an `A`.
    pub(crate) fn give_back<A: 'static>(bytes: Arc<KeptBytes>) -> A {
        let bytes = Arc::try_unwrap(bytes).map(|kept| kept.bytes);
        let bytes = bytes.unwrap_or_else(|shared| shared.as_slice().to_vec());
        let Ok(argument) = codec::from_bytes(bytes) else { panic!("an argument of another type") };
        argument
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<A: Clone + PartialEq + std::fmt::Debug + serde::Serialize + 'static>(argument: &A) {
        let kept = KeptArgument::take(argument.clone());
        let mut encoded = Vec::new();
        codec::encode(argument, &mut encoded, usize::MAX).unwrap();
        assert!(kept.encoded() == encoded);
        let bytes = kept.bytes();
        drop(kept);
        assert!(KeptArgument::give_back::<A>(bytes) == *argument);
    }

    #[test]
    fn large_bytes_and_text_are_kept_and_given_back() {
        check(&vec![7_u8; OFFERED]);
        check(&"x".repeat(OFFERED + 1));
    }

    #[test]
    fn other_arguments_are_not_kept() {
        assert!(KeptArgument::suits(&vec![7_u8; OFFERED], usize::MAX));
        assert!(!KeptArgument::suits(&vec![7_u8; OFFERED - 1], usize::MAX));
        assert!(!KeptArgument::suits(&vec![7_u8; OFFERED], OFFERED));
        assert!(!KeptArgument::suits(&vec![7_u64; OFFERED], usize::MAX));
    }

    #[test]
    fn the_memory_of_the_argument_is_kept() {
        let argument = vec![7_u8; OFFERED];
        let address = argument.as_ptr();
        let bytes = KeptArgument::take(argument).bytes();
        assert_eq!(bytes.as_slice().as_ptr(), address);
        let argument: Vec<u8> = KeptArgument::give_back(bytes);
        assert_eq!(argument.as_ptr(), address);
    }
}
