//! Large arguments, and large vectors in arguments, that the host keeps, and copies to the worker
//! that begins the task.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use brigade_sys::arena::{MOST_OFFERED, OFFERED};
use brigade_sys::numbers::{Numbers, SharedNumbers};
use brigade_wire::codec::{self, parts};
use brigade_wire::{Kept, Location};

use super::Argument;

/// A vector of numbers, a `String` or an `Encoded` in the memory of the caller's value, or another
/// value whose vectors are in that memory.
#[derive(Debug)]
pub struct KeptArgument {
    bytes: Arc<KeptBytes>,
    form: Form,
    /// The encoded argument, for a worker that has no arena.
    encoded: OnceLock<Vec<u8>>,
}

/// The parts of the encoded argument.
#[derive(Debug)]
enum Form {
    /// The bytes.
    Bytes,
    /// The number of numbers, and the bytes.
    Counted,
    /// This, which is encoded [without the parts](parts).
    Parts(Argument),
}

/// The bytes of an argument that the host keeps.
#[derive(Debug)]
pub struct KeptBytes {
    memory: Memory,
    /// Number of parts that the worker has got that was sent the task last. Changed under the
    /// core's lock.
    delivered: AtomicUsize,
}

#[derive(Debug, Clone)]
enum Memory {
    Whole(Numbers),
    Parts(Vec<SharedNumbers>),
}

impl KeptBytes {
    fn new(memory: Memory) -> Arc<Self> {
        Arc::new(Self { memory, delivered: AtomicUsize::new(usize::MAX) })
    }

    fn whole(&self) -> Option<&Numbers> {
        if let Memory::Whole(numbers) = &self.memory { Some(numbers) } else { None }
    }

    /// Returns the bytes of a part. A whole argument has one.
    pub(crate) fn part(&self, index: usize) -> Option<&[u8]> {
        match &self.memory {
            Memory::Whole(numbers) => (index == 0).then(|| numbers.as_bytes()),
            Memory::Parts(parts) => parts.get(index).map(SharedNumbers::as_bytes),
        }
    }

    /// Returns the index of the part that the worker has to get next, unless it has all of them.
    pub(crate) fn owed(&self) -> Option<usize> {
        let index = self.delivered.load(Ordering::Relaxed);
        self.part(index).map(|_| index)
    }

    /// Notes that the worker has got a part.
    pub(crate) fn deliver(&self, index: usize) {
        self.delivered.store(index + 1, Ordering::Relaxed);
    }
}

impl KeptArgument {
    /// Returns `true` if an argument is worth keeping as a whole.
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
        let form = if is_counted { Form::Counted } else { Form::Bytes };
        Self { bytes: KeptBytes::new(Memory::Whole(numbers)), form, encoded: OnceLock::new() }
    }

    /// Takes an argument that is encoded without these parts.
    pub(super) fn in_parts(encoded: Argument, parts: Vec<SharedNumbers>) -> Self {
        let (bytes, form) = (KeptBytes::new(Memory::Parts(parts)), Form::Parts(encoded));
        Self { bytes, form, encoded: OnceLock::new() }
    }

    /// Returns the argument again, with the same parts, if it has some.
    pub(super) fn again(&self, copy: impl FnOnce(&Argument) -> Argument) -> Option<Self> {
        match (&self.form, &self.bytes.memory) {
            (Form::Parts(encoded), Memory::Parts(parts)) => {
                Some(Self::in_parts(copy(encoded), parts.clone()))
            }
            _ => None,
        }
    }

    /// Returns another owner of the bytes.
    pub(crate) fn bytes(&self) -> Arc<KeptBytes> {
        Arc::clone(&self.bytes)
    }

    /// Returns what the message says of the bytes that sends the task. Its worker may ask for each
    /// part once.
    pub(crate) fn send(&self) -> Kept {
        self.bytes.delivered.store(0, Ordering::Relaxed);
        let Some(numbers) = self.bytes.whole() else { return Kept::Parts };
        let counted = matches!(self.form, Form::Counted).then(|| numbers.unit());
        Kept::Whole { length: numbers.as_bytes().len() as u64, counted }
    }

    /// Returns what the same message has in place of the encoded argument.
    pub(crate) fn head(&self, reads_arena: bool) -> (Option<Location>, &[u8]) {
        let Form::Parts(encoded) = &self.form else { return (None, &[]) };
        match encoded.location().filter(|_| reads_arena) {
            Some(location) => (Some(location), &[]),
            None => (None, encoded.as_bytes()),
        }
    }

    pub(super) fn size(&self) -> usize {
        match &self.bytes.memory {
            Memory::Whole(numbers) => numbers.capacity(),
            Memory::Parts(parts) => {
                let head = if let Form::Parts(encoded) = &self.form { encoded.size() } else { 0 };
                head + parts.iter().map(|part| part.as_bytes().len()).sum::<usize>()
            }
        }
    }

    /// Returns the encoded argument, which is a copy unless it is the bytes.
    pub(super) fn encoded(&self) -> &[u8] {
        match (&self.form, self.bytes.whole()) {
            (Form::Bytes, Some(numbers)) => numbers.as_bytes(),
            _ => self.encoded.get_or_init(|| self.join()),
        }
    }

    fn join(&self) -> Vec<u8> {
        if let Some(numbers) = self.bytes.whole() {
            let (prefix, bytes) = codec::parts_of_numbers(numbers);
            return [prefix.as_slice(), bytes].concat();
        }
        let Form::Parts(encoded) = &self.form else { return Vec::new() };
        let joined = parts::join::<Self>(encoded.as_bytes(), |index| self.bytes.part(index));
        // It has the parts with which it was encoded.
        joined.unwrap_or_default()
    }

    /// Returns an argument that was kept as a whole again, after its task was not accepted and was
    /// dropped.
    ///
    /// # Panics
    /// If the bytes were not an `A`.
    pub(crate) fn give_back<A: 'static>(bytes: Arc<KeptBytes>) -> A {
        let memory = Arc::try_unwrap(bytes).map(|kept| kept.memory);
        let argument = match memory.unwrap_or_else(|shared| shared.memory.clone()) {
            Memory::Whole(numbers) => codec::from_numbers(numbers).ok(),
            Memory::Parts(_) => None,
        };
        let Some(argument) = argument else { panic!("an argument of another type") };
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
}
