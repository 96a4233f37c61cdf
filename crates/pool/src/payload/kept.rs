//! Numbers that stay in the memory of the caller's argument until the host copies them to the
//! worker that begins the task.

use std::sync::Arc;

use brigade_sys::arena::{MAX_OFFERED, OFFERED};
use brigade_sys::numbers::{Mark, SharedNumbers};
use brigade_sys::sync::Mutex;
use brigade_wire::codec;
use brigade_wire::segments::Apart;

/// The numbers that are apart from an encoded argument.
#[derive(Debug)]
pub(crate) struct KeptParts {
    parts: Vec<(Mark, SharedNumbers)>,
    /// The part that the worker has to get next that was sent the task last.
    owed: Mutex<Owed>,
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

impl KeptParts {
    pub(super) fn new(parts: Vec<(Mark, SharedNumbers)>) -> Arc<Self> {
        Arc::new(Self { parts, owed: Mutex::new(Owed { sent: 0, part: usize::MAX }) })
    }

    /// Returns `true` if an argument is worth keeping as a whole.
    #[inline]
    pub(crate) fn suits<A: 'static>(argument: &A, limit: usize) -> bool {
        codec::contiguous_parts(argument).is_some_and(|(prefix, bytes)| {
            (OFFERED..=MAX_OFFERED).contains(&bytes.len())
                && bytes.len().saturating_add(prefix.as_slice().len()) <= limit
        })
    }

    /// Returns an argument that was kept as a whole again, after its task was not accepted and was
    /// dropped.
    ///
    /// # Panics
    /// If the numbers were not an `A`.
    pub(crate) fn give_back<A: 'static>(kept: Arc<Self>) -> A {
        let mut parts =
            Arc::try_unwrap(kept).map_or_else(|kept| kept.parts.clone(), |kept| kept.parts);
        let numbers = parts.pop().and_then(|(_, part)| part.into_numbers());
        let Some(argument) = numbers.and_then(|numbers| codec::from_numbers(numbers).ok()) else {
            panic!("an argument of another type")
        };
        argument
    }

    /// Returns the parts, to be sent with another task.
    pub(super) fn again(&self) -> Arc<Self> {
        Self::new(self.parts.clone())
    }

    /// Returns the segments of the parts.
    pub(super) fn segments(&self) -> impl Iterator<Item = Apart> {
        self.parts.iter().map(|(mark, part)| Apart::of(*mark, part, false))
    }

    /// Begins to send the task. Its worker may ask for each part once.
    pub(crate) fn send(&self) {
        let mut next = self.owed.lock();
        *next = Owed { sent: next.sent.wrapping_add(1), part: 0 };
    }

    /// Returns the bytes of a part.
    pub(crate) fn part(&self, index: usize) -> Option<&[u8]> {
        self.parts.get(index).map(|(_, part)| part.as_bytes())
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

    /// Returns the number of bytes of the parts.
    pub(crate) fn size(&self) -> usize {
        self.parts.iter().map(|(_, part)| part.as_bytes().len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Argument;
    use super::*;

    fn check<A: Clone + PartialEq + std::fmt::Debug + serde::Serialize + 'static>(argument: &A) {
        let (sent, kept) = Argument::keep(argument.clone());
        let mut encoded = Vec::new();
        codec::encode(argument, &mut encoded, usize::MAX).unwrap();
        let inline = sent.inlined(false, usize::MAX, false, |_| true).unwrap();
        let (joined, segments) = brigade_wire::segments::split(&inline).unwrap();
        assert!(joined == encoded && segments.len() == 0);
        drop(sent);
        assert!(KeptParts::give_back::<A>(kept) == *argument);
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
        assert!(KeptParts::suits(&vec![7_u8; OFFERED], usize::MAX));
        assert!(!KeptParts::suits(&vec![7_u8; OFFERED - 1], usize::MAX));
        assert!(!KeptParts::suits(&vec![7_u8; OFFERED], OFFERED));
        assert!(!KeptParts::suits(&vec![7_u64; OFFERED / 8 - 1], usize::MAX));
        assert!(!KeptParts::suits(&vec![true; OFFERED], usize::MAX));
    }

    #[test]
    fn the_memory_of_the_argument_is_kept() {
        let argument = vec![7_f64; OFFERED];
        let address = argument.as_ptr();
        let (sent, kept) = Argument::keep(argument);
        drop(sent);
        assert_eq!(kept.part(0).unwrap().as_ptr(), address.cast());
        let argument: Vec<f64> = KeptParts::give_back(kept);
        assert_eq!(argument.as_ptr(), address);
    }

    #[test]
    fn a_late_copy_does_not_count_for_the_next_worker() {
        let parts = [1_u8, 2].map(|byte| ([byte; 16], SharedNumbers::of(Arc::new(vec![byte]))));
        let kept = KeptParts::new(parts.to_vec());
        assert_eq!(kept.owed(), None);
        kept.send();
        let first = kept.owed().unwrap();
        kept.send();
        kept.deliver(first);
        let part = |owed: Owed| kept.part(owed.part).unwrap();
        assert_eq!(part(kept.owed().unwrap()), [1]);
        for expected in [[1], [2]] {
            let owed = kept.owed().unwrap();
            assert_eq!(part(owed), expected);
            kept.deliver(owed);
            kept.deliver(owed);
        }
        assert_eq!(kept.owed(), None);
    }
}
