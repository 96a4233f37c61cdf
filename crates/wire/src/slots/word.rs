//! The state word and its transitions, independent of its memory, so that loom can check them.

use std::sync::atomic::Ordering;

use super::Revocation;

/// The lowest bits are the state, the next one is the round, and the others are the tag.
const STATE: u64 = 0b11;
const ROUND: u64 = 0b100;
const TAG_SHIFT: u32 = 3;

const RUNNING: u64 = 1;
const REVOKED: u64 = 2;

/// An atomic word: the standard library's, or loom's in the model beside this file. Both get their
/// orderings from the transitions below, so loom checks the code that runs.
pub(super) trait Word {
    fn load(&self, ordering: Ordering) -> u64;
    /// On failure returns the actual value.
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64>;
}

impl Word for std::sync::atomic::AtomicU64 {
    #[inline]
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    #[inline]
    fn swap_if(&self, expected: u64, value: u64, won: Ordering, lost: Ordering) -> Result<(), u64> {
        self.compare_exchange(expected, value, won, lost).map(drop)
    }
}

/// Returns the word of a task that runs. `last` is that of the task before, running or revoked.
///
/// It differs from `last` even if the tags are equal, as those of a task are that was revoked and
/// then sent again.
#[inline]
pub(super) fn running(tag: u32, last: u64) -> u64 {
    u64::from(tag) << TAG_SHIFT | (last ^ ROUND) & ROUND | RUNNING
}

/// Returns the word of a task that was revoked, from that of the same task if it runs.
#[inline]
pub(super) fn revoked(running: u64) -> u64 {
    running & !STATE | REVOKED
}

pub(super) fn has_tag(word: u64, tag: u32) -> bool {
    word >> TAG_SHIFT == u64::from(tag)
}

pub(super) fn is_revoked(word: u64) -> bool {
    word & STATE == REVOKED
}

/// Worker: begins a task, unless it was revoked. The word before it may be any, so that garbage in
/// it does not outlast the task.
#[inline]
pub(super) fn begin(word: &impl Word, running: u64) -> bool {
    let mut found = word.load(Ordering::Relaxed);
    while found != revoked(running) {
        match word.swap_if(found, running, Ordering::AcqRel, Ordering::Acquire) {
            Ok(()) => return true,
            Err(actual) => found = actual,
        }
    }
    false
}

/// Host: revokes a task, unless it has begun. `last` is the word of the task before.
pub(super) fn revoke(word: &impl Word, last: u64, running: u64) -> Revocation {
    match word.swap_if(last, revoked(running), Ordering::AcqRel, Ordering::Acquire) {
        Ok(()) => Revocation::Revoked,
        Err(found) if found == running => Revocation::Begun,
        Err(_) => Revocation::Neither,
    }
}
