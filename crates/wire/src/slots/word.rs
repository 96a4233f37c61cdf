//! The state word and its transitions, independent of its memory, so that loom can check them.

use std::sync::atomic::Ordering;

use super::Revocation;
use crate::word::Word;

/// Number of state bits; the other bits are the tag.
const STATE_BITS: u32 = 3;

pub(super) const QUEUED: u64 = 1;
pub(super) const RUNNING: u64 = 2;
pub(super) const REVOKED: u64 = 3;

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
