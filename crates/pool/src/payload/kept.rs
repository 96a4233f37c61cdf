//! Large arguments that the host keeps, and copies to the worker that begins the task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{MOST_OFFERED, OFFERED};
use brigade_sys::numbers::Numbers;
use brigade_wire::Kept;
use brigade_wire::codec;

/// A vector of numbers, a `String` or an `Encoded`, in the memory of the caller's value.
#[derive(Debug)]
pub struct KeptArgument {
    bytes: Arc<KeptBytes>,
    /// The encoded argument begins with how many numbers these are.
    is_counted: bool,
    /// The encoded argument, for a worker that has no arena.
    encoded: OnceLock<Vec<u8>>,
}

/// The bytes of an argument that the host keeps.
#[derive(Debug)]
pub struct KeptBytes {
    numbers: Numbers,
    /// The worker that was sent the task last has not got them. Changed under the core's lock.
    is_owed: AtomicBool,
}

impl KeptBytes {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.numbers.as_bytes()
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
        let numbers = codec::into_numbers(argument).unwrap_or_default();
        let bytes = Arc::new(KeptBytes { numbers, is_owed: AtomicBool::new(false) });
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
        let counted = self.is_counted.then(|| self.bytes.numbers.unit());
        Kept { length: self.bytes.as_bytes().len() as u64, counted }
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.numbers.capacity()
    }

    /// Returns the encoded argument, which is a copy if the numbers are counted.
    pub(super) fn encoded(&self) -> &[u8] {
        if !self.is_counted {
            return self.bytes.as_bytes();
        }
        self.encoded.get_or_init(|| {
            let (prefix, bytes) = codec::parts_of_numbers(&self.bytes.numbers);
            [prefix.as_slice(), bytes].concat()
        })
    }

    /// Returns the argument again, after its task was not accepted and was dropped.
    ///
    /// # Panics
    /// If the bytes were not an `A`.
    pub(crate) fn give_back<A: 'static>(bytes: Arc<KeptBytes>) -> A {
        let numbers = Arc::try_unwrap(bytes).map(|kept| kept.numbers);
        let numbers = numbers.unwrap_or_else(|shared| shared.numbers.clone());
        let Ok(argument) = codec::from_numbers(numbers) else {
            panic!("an argument of another type")
        };
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
    fn large_numbers_and_text_are_kept_and_given_back() {
        check(&vec![7_u8; OFFERED]);
        check(&vec![-7_i16; OFFERED / 2]);
        check(&vec![0.5_f32; OFFERED / 4 + 1]);
        check(&vec![7_usize; OFFERED / 8]);
        check(&vec![7_u128; OFFERED / 16]);
        check(&"x".repeat(OFFERED + 1));
    }

    #[test]
    fn other_arguments_are_not_kept() {
        assert!(KeptArgument::suits(&vec![7_u8; OFFERED], usize::MAX));
        assert!(!KeptArgument::suits(&vec![7_u8; OFFERED - 1], usize::MAX));
        assert!(!KeptArgument::suits(&vec![7_u8; OFFERED], OFFERED));
        assert!(!KeptArgument::suits(&vec![7_u64; OFFERED / 8 - 1], usize::MAX));
        assert!(!KeptArgument::suits(&vec![true; OFFERED], usize::MAX));
    }

    #[test]
    fn the_memory_of_the_argument_is_kept() {
        let argument = vec![7_f64; OFFERED];
        let address = argument.as_ptr();
        let bytes = KeptArgument::take(argument).bytes();
        assert_eq!(bytes.as_bytes().as_ptr(), address.cast());
        let argument: Vec<f64> = KeptArgument::give_back(bytes);
        assert_eq!(argument.as_ptr(), address);
    }
}
