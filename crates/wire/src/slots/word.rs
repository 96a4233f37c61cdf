//! The state word and its transitions, independent of its memory, so that loom can check them.

use std::sync::atomic::Ordering;

use super::Revocation;

/// Number of state bits; the other bits are the tag.
const STATE_BITS: u32 = 3;

pub(super) const QUEUED: u64 = 1;
pub(super) const RUNNING: u64 = 2;
pub(super) const REVOKED: u64 = 3;

/// An atomic word: the standard library's, or loom's in the model beside this file. Both get their
/// orderings from the transitions below, so loom checks the code that runs.
pub(super) trait Word {
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// On failure returns the actual value.
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64>;
}

impl Word for std::sync::atomic::AtomicU64 {
    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    #[inline]
    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    #[inline]
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64> {
        self.compare_exchange(expected, value, won, lost).map(drop)
    }
}

#[inline]
pub(super) fn arm(word: &impl Word, tag: u32) {
    word.store(compose(tag, QUEUED), Ordering::Release);
}

#[inline]
pub(super) fn begin(word: &impl Word, tag: u32) -> bool {
    leave_queued(word, tag, RUNNING).is_ok()
}

pub(super) fn revoke(word: &impl Word, tag: u32) -> Revocation {
    match leave_queued(word, tag, REVOKED) {
        Ok(()) => Revocation::Revoked,
        Err(found) if found == compose(tag, RUNNING) => Revocation::Begun,
        Err(_) => Revocation::Neither,
    }
}

pub(super) fn is_queued(word: &impl Word, tag: u32) -> bool {
    word.load(Ordering::Acquire) == compose(tag, QUEUED)
}

pub(super) fn read(word: &impl Word) -> u64 {
    word.load(Ordering::Acquire) & ((1 << STATE_BITS) - 1)
}

/// Leaves the state *queued*. Only one of several contenders succeeds; the others get the actual
/// value.
#[inline]
fn leave_queued(word: &impl Word, tag: u32, state: u64) -> Result<(), u64> {
    word.swap_if(compose(tag, QUEUED), compose(tag, state), Ordering::AcqRel, Ordering::Acquire)
}

#[inline]
fn compose(tag: u32, state: u64) -> u64 {
    u64::from(tag) << STATE_BITS | state
}
