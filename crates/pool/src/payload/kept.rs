//! Large arguments, and large vectors in arguments, that the host keeps, and copies to the worker
//! that begins the task.

use std::any::type_name;
use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{MAX_OFFERED, OFFERED};
use brigade_sys::numbers::{Numbers, SharedNumbers};
use brigade_sys::sync::Mutex;
use brigade_wire::codec::{self, parts};
use brigade_wire::{Kept, Location};

use super::Argument;

/// A vector of numbers, a `String` or an `Encoded` in the memory of the caller's value, or another
/// value whose vectors are in that memory.
#[derive(Debug)]
pub(crate) struct KeptArgument {
    bytes: Arc<KeptBytes>,
    /// The encoded argument, for a worker that has no arena.
    encoded: OnceLock<Vec<u8>>,
}

/// The bytes of an argument that the host keeps.
#[derive(Debug)]
pub(crate) struct KeptBytes {
    memory: Memory,
    /// The part that the worker has to get next that was sent the task last.
    owed: Mutex<Owed>,
}

#[derive(Debug)]
enum Memory {
    /// If the numbers are counted, the encoded argument begins with how many they are.
    Whole { numbers: Numbers, is_counted: bool },
    /// The argument is encoded without the parts.
    Parts { encoded: Argument, parts: Vec<SharedNumbers> },
}

/// A part that a worker has to get.
///
/// A copy for an earlier worker may end after the task was sent to the next one, to which that copy
/// must not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Number of times that the task was sent.
    sent: u32,
    /// The index of the part.
    pub(crate) part: usize,
}

impl KeptBytes {
    /// Returns the bytes of a part. A whole argument has one.
    pub(crate) fn part(&self, index: usize) -> Option<&[u8]> {
        match &self.memory {
            Memory::Whole { numbers, .. } => (index == 0).then(|| numbers.as_bytes()),
            Memory::Parts { parts, .. } => parts.get(index).map(SharedNumbers::as_bytes),
        }
    }

    /// Returns the part that the worker has to get next, unless it has all of them.
    pub(crate) fn owed(&self) -> Option<Owed> {
        let owed = *self.owed.lock();
        self.part(owed.part).map(|_| owed)
    }

    /// Notes that the worker has got a part, if the task was not sent again meanwhile.
    pub(crate) fn deliver(&self, owed: Owed) {
        let mut next = self.owed.lock();
        if *next == owed {
            next.part += 1;
        }
    }
}

impl KeptArgument {
    fn new(memory: Memory) -> Self {
        let owed = Mutex::new(Owed { sent: 0, part: usize::MAX });
        Self { bytes: Arc::new(KeptBytes { memory, owed }), encoded: OnceLock::new() }
    }

    /// Returns `true` if an argument is worth keeping as a whole.
    #[inline]
    pub(crate) fn suits<A: 'static>(argument: &A, limit: usize) -> bool {
        codec::contiguous_parts(argument).is_some_and(|(prefix, bytes)| {
            (OFFERED..=MAX_OFFERED).contains(&bytes.len())
                && bytes.len().saturating_add(prefix.as_slice().len()) <= limit
        })
    }

    /// Takes the memory of an argument that [suits](Self::suits).
    pub(crate) fn take<A: 'static>(argument: A) -> Self {
        let prefix = codec::contiguous_parts(&argument).map(|(prefix, _)| prefix);
        let is_counted = prefix.is_some_and(|prefix| !prefix.as_slice().is_empty());
        let numbers = codec::into_numbers(argument).unwrap_or_default();
        Self::new(Memory::Whole { numbers, is_counted })
    }

    /// Takes an argument that is [encoded without these parts](parts).
    pub(super) fn in_parts(encoded: Argument, parts: Vec<SharedNumbers>) -> Self {
        Self::new(Memory::Parts { encoded, parts })
    }

    /// Returns the argument again, with the same parts, if it has some.
    pub(super) fn again(&self, copy: impl FnOnce(&Argument) -> Argument) -> Option<Self> {
        let Memory::Parts { encoded, parts } = &self.bytes.memory else { return None };
        Some(Self::in_parts(copy(encoded), parts.clone()))
    }

    /// Returns another owner of the bytes.
    pub(crate) fn bytes(&self) -> Arc<KeptBytes> {
        Arc::clone(&self.bytes)
    }

    /// Returns the description of the bytes for the message that sends the task. Its worker may ask
    /// for each part once.
    pub(crate) fn send(&self) -> Kept {
        let mut next = self.bytes.owed.lock();
        *next = Owed { sent: next.sent.wrapping_add(1), part: 0 };
        drop(next);
        match &self.bytes.memory {
            Memory::Whole { numbers, is_counted } => Kept::Whole {
                length: numbers.as_bytes().len() as u64,
                counted: is_counted.then(|| numbers.unit()),
            },
            Memory::Parts { .. } => Kept::Parts,
        }
    }

    /// Returns the bytes that the same message has in place of the argument, or their location.
    pub(crate) fn head(&self, reads_arena: bool) -> (Option<Location>, &[u8]) {
        let Memory::Parts { encoded, .. } = &self.bytes.memory else { return (None, &[]) };
        match encoded.location().filter(|_| reads_arena) {
            Some(location) => (Some(location), &[]),
            None => (None, encoded.as_bytes()),
        }
    }

    pub(super) fn size(&self) -> usize {
        match &self.bytes.memory {
            Memory::Whole { numbers, .. } => numbers.capacity(),
            Memory::Parts { encoded, parts } => {
                encoded.size() + parts.iter().map(|part| part.as_bytes().len()).sum::<usize>()
            }
        }
    }

    /// Returns the encoded argument, which is a copy unless it is the bytes.
    pub(super) fn encoded(&self) -> &[u8] {
        match &self.bytes.memory {
            Memory::Whole { numbers, is_counted: false } => numbers.as_bytes(),
            Memory::Whole { numbers, is_counted: true } => self.encoded.get_or_init(|| {
                let (prefix, bytes) = codec::parts_of_numbers(numbers);
                [prefix.as_slice(), bytes].concat()
            }),
            Memory::Parts { encoded, parts } => self.encoded.get_or_init(|| {
                // These are the parts without which it was encoded.
                parts::join(encoded.as_bytes(), parts, type_name::<Self>()).unwrap_or_default()
            }),
        }
    }

    /// Returns an argument that was kept as a whole again, after its task was not accepted and was
    /// dropped.
    ///
    /// # Panics
    /// If the bytes were not an `A`.
    pub(crate) fn give_back<A: 'static>(bytes: Arc<KeptBytes>) -> A {
        let numbers = match Arc::try_unwrap(bytes) {
            Ok(KeptBytes { memory: Memory::Whole { numbers, .. }, .. }) => Some(numbers),
            Err(shared) => match &shared.memory {
                Memory::Whole { numbers, .. } => Some(numbers.clone()),
                Memory::Parts { .. } => None,
            },
            Ok(_) => None,
        };
        let Some(argument) = numbers.and_then(|numbers| codec::from_numbers(numbers).ok()) else {
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
        assert_eq!(bytes.part(0).unwrap().as_ptr(), address.cast());
        let argument: Vec<f64> = KeptArgument::give_back(bytes);
        assert_eq!(argument.as_ptr(), address);
    }

    #[test]
    fn a_late_copy_does_not_count_for_the_next_worker() {
        let parts = [1_u8, 2].map(|byte| SharedNumbers::of(Arc::new(vec![byte])));
        let kept = KeptArgument::in_parts(Argument::EMPTY, parts.to_vec());
        let bytes = kept.bytes();
        assert_eq!(bytes.owed(), None);
        assert_eq!(kept.send(), Kept::Parts);
        let first = bytes.owed().unwrap();
        assert_eq!(kept.send(), Kept::Parts);
        bytes.deliver(first);
        let part = |owed: Owed| bytes.part(owed.part).unwrap();
        assert_eq!(part(bytes.owed().unwrap()), [1]);
        for expected in [[1], [2]] {
            let owed = bytes.owed().unwrap();
            assert_eq!(part(owed), expected);
            bytes.deliver(owed);
            bytes.deliver(owed);
        }
        assert_eq!(bytes.owed(), None);
    }
}
