//! The control page of an arena of results: its terms, and the bell of those who wait for memory.
//!
//! It is the last page of the arena. The host writes the terms before anybody else has the arena;
//! the worker reads them once. A worker that runs wild can change them, and thereby only its own
//! use of its own arena.

use std::sync::atomic::{AtomicU64, Ordering};

use super::counters::Bell;
use super::mapping::{Mapping, page_size};
use super::{KEPT, Protection};
use crate::futex;

/// The rules of one arena of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// The budget in bytes.
const BUDGET: usize = 0;
/// The protection, as its number.
const PROTECTION: usize = 8;
/// Two words on cache lines of their own, because both sides write them.
const WAITING: usize = 64;
const RINGS: usize = 128;

/// Bytes of the page.
pub(super) fn length() -> usize {
    page_size()
}

fn word(mapping: &Mapping, at: usize) -> &AtomicU64 {
    mapping.word(mapping.len() - length() + at)
}

pub(super) fn write_terms(mapping: &Mapping, terms: Terms) {
    word(mapping, BUDGET).store(terms.budget as u64, Ordering::Relaxed);
    word(mapping, PROTECTION).store(terms.protection as u64, Ordering::Release);
}

pub(super) fn read_terms(mapping: &Mapping) -> Terms {
    let protection = match word(mapping, PROTECTION).load(Ordering::Acquire) {
        protection if protection == Protection::ReadOnly as u64 => Protection::ReadOnly,
        protection if protection == Protection::Copied as u64 => Protection::Copied,
        _ => Protection::Trusted,
    };
    let budget = word(mapping, BUDGET).load(Ordering::Relaxed);
    Terms { budget: usize::try_from(budget).unwrap_or(usize::MAX), protection }
}

fn bell(mapping: &Mapping) -> Bell<'_, AtomicU64> {
    Bell { waiting: word(mapping, WAITING), rings: word(mapping, RINGS) }
}

/// Wakes those who wait for memory of the arena, after some was released.
pub(super) fn ring(mapping: &Mapping) {
    if bell(mapping).ring() {
        futex::wake_all(word(mapping, RINGS));
    }
}

/// A thread that waits for a release.
pub(super) struct Waiting<'a> {
    mapping: &'a Mapping,
}

impl<'a> Waiting<'a> {
    pub(super) fn announce(mapping: &'a Mapping) -> Self {
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
pub(super) fn waiting(mapping: &Mapping) -> u64 {
    word(mapping, WAITING).load(Ordering::Relaxed)
}
