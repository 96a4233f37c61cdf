//! The terms of an arena of results, and its control page: the bell of those who wait for memory.
//!
//! It is the last page of the arena. Nothing is written there before somebody waits, so an arena
//! that is not used takes no memory at all.

use std::sync::atomic::AtomicU64;

use super::counters::ReleaseBell;
use super::mapping::{ArenaMapping, page_size};
use super::{KEPT, Protection};
use crate::futex;

/// The rules of one arena of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Terms {
    /// Bytes that the blocks of the arena may take before an allocation waits, and bytes of free
    /// memory that stay warm.
    pub budget: usize,
    /// Protection of the bytes that the host reads.
    pub protection: Protection,
}

/// [`KEPT`] bytes, and the default protection.
impl Default for Terms {
    fn default() -> Self {
        Self { budget: KEPT, protection: Protection::default() }
    }
}

/// Words on cache lines of their own, because both sides write them.
const WAITING: usize = 64;
const RINGS: usize = 128;
/// Set by the host: the worker may offer payloads. See [`offer`](super::offer).
const OFFERS: usize = 192;

/// Bytes of the page.
pub(super) fn length() -> usize {
    page_size()
}

fn word(mapping: &ArenaMapping, at: usize) -> &AtomicU64 {
    mapping.word(mapping.len() - length() + at)
}

fn bell(mapping: &ArenaMapping) -> ReleaseBell<'_, AtomicU64> {
    ReleaseBell { waiting: word(mapping, WAITING), rings: word(mapping, RINGS) }
}

/// Returns the word that says whether the worker may offer payloads.
pub(super) fn offers(mapping: &ArenaMapping) -> &AtomicU64 {
    word(mapping, OFFERS)
}

/// Wakes those who wait for memory of the arena, after some was released.
pub(super) fn ring(mapping: &ArenaMapping) {
    if bell(mapping).ring() {
        futex::wake_all(word(mapping, RINGS));
    }
}

/// A thread that waits for a release.
pub(super) struct Waiting<'a> {
    mapping: &'a ArenaMapping,
}

impl<'a> Waiting<'a> {
    pub(super) fn announce(mapping: &'a ArenaMapping) -> Self {
        bell(mapping).announce();
        Self { mapping }
    }

    /// Returns a number that changes with every release. Read it before looking for memory.
    pub(super) fn seen(&self) -> u64 {
        bell(self.mapping).seen()
    }

    /// Sleeps until there was a release after `seen`; may return early.
    pub(super) fn sleep(&self, seen: u64) {
        futex::wait(word(self.mapping, RINGS), seen);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        bell(self.mapping).withdraw();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::super::ResultView;
    use super::{WAITING, word};

    impl ResultView {
        /// Returns the number of threads that wait for memory of the arena.
        pub(in crate::arena) fn waiting(&self) -> u64 {
            word(self.mapping(), WAITING).load(Ordering::Relaxed)
        }
    }
}
