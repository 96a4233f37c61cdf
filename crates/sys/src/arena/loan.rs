//! The host's side of a worker's results.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::mapping::{self, Mapping, page_size, whole_pages};
use super::{HEADER, KEPT, RELEASED};
use crate::fork::Origin;

/// The arena that one worker writes, as the host sees it: bytes that may change at any time, to be copied out.
#[derive(Debug)]
pub struct ResultView {
    descriptor: OwnedFd,
    mapping: Mapping,
    /// The most bytes of a payload.
    longest: usize,
    /// Bytes of all loans.
    lent: AtomicUsize,
    /// A fork of the process may not give anything back.
    origin: Origin,
}

impl ResultView {
    /// An arena of `bytes` bytes for payloads of at most `longest`; of half as many, and so on, when the system refuses
    /// that: see [`len`](Self::len). The name is seen in `/proc` only.
    ///
    /// # Errors
    /// When address space or descriptors run out.
    pub fn create(name: &str, bytes: usize, longest: usize) -> io::Result<Arc<Self>> {
        let (descriptor, mapping) = mapping::create(name, bytes)?;
        Ok(Arc::new(Self {
            descriptor,
            mapping,
            longest,
            lent: AtomicUsize::new(0),
            origin: Origin::here(),
        }))
    }

    /// How many bytes the arena has, whether they are used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// The payload that a worker says it has put there. `None` when no block can have it there or it is too long: the
    /// worker breaks the protocol.
    pub fn loan(self: &Arc<Self>, offset: usize, length: usize) -> Option<Loan> {
        let start = offset.checked_sub(HEADER)?;
        if length > self.longest
            || !start.is_multiple_of(page_size())
            || !self.mapping.contains(offset, length)
        {
            return None;
        }
        let taken = whole_pages(HEADER + length)?;
        self.lent.fetch_add(taken, Ordering::Relaxed);
        Some(Loan { view: Arc::clone(self), start, taken, length })
    }
}

/// What the worker gets: it writes through it.
impl AsFd for ResultView {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A payload in a worker's arena. Dropped, it lets the worker use the memory again.
///
/// A worker that lies may have several loans of the same memory under way, or use it again while it is lent. Then it gets
/// the memory back earlier, and the copies have other bytes.
#[derive(Debug)]
pub struct Loan {
    view: Arc<ResultView>,
    /// Of the block, where its flag is.
    start: usize,
    /// Whole pages.
    taken: usize,
    length: usize,
}

impl Loan {
    /// The payload's length.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is no payload.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// A copy of `length` bytes from `at` on, as they are now.
    ///
    /// # Panics
    /// When the payload ends before.
    pub fn copy_to_vec(&self, at: usize, length: usize) -> Vec<u8> {
        let mut copy = Vec::new();
        self.copy_into(at, length, &mut copy);
        copy
    }

    /// Appends a copy of `length` bytes from `at` on, as they are now.
    ///
    /// # Panics
    /// When the payload ends before.
    pub fn copy_into(&self, at: usize, length: usize, into: &mut Vec<u8>) {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(fits, "bytes beyond their loan");
        let before = into.len();
        into.reserve_exact(length);
        self.view.mapping.read(self.start + HEADER + at, &mut into.spare_capacity_mut()[..length]);
        // SAFETY: there is room for them, and they were written just now.
        unsafe { into.set_len(before + length) };
    }

    /// How much of the block stays warm: all of it while what is lent is little. The worker may be idle, so that only the
    /// host can give back what is beyond that.
    fn keep(&self) -> usize {
        let others =
            self.view.lent.fetch_sub(self.taken, Ordering::Relaxed).saturating_sub(self.taken);
        let kept = KEPT.saturating_sub(others);
        // The page with the flag is going to be written anyway.
        if kept >= self.taken { self.taken } else { (kept - kept % page_size()).max(page_size()) }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.view.origin.is_here() {
            return;
        }
        let kept = self.keep();
        let flag = if kept == self.taken {
            RELEASED
        } else {
            self.view.mapping.discard(self.start + kept, self.taken - kept);
            kept as u64
        };
        // Release: what was copied was copied before. Of a worker that lies it is a word that means nothing, in memory that
        // only that worker uses.
        self.view.mapping.word(self.start).store(flag, Ordering::Release);
    }
}
