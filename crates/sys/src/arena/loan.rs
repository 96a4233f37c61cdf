//! The host's side of a worker's arena of results.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::mapping::{self, Mapping, page_size, whole_pages};
use super::{HEADER, KEPT, RELEASED};
use crate::fork::Origin;

/// The arena that one worker writes, as the host sees it: bytes that may change at any time and
/// must be copied out.
#[derive(Debug)]
pub struct ResultView {
    descriptor: OwnedFd,
    mapping: Mapping,
    /// Maximum number of bytes of a payload.
    longest: usize,
    /// Total bytes of all loans.
    lent: AtomicUsize,
    /// A fork of the process may not release anything.
    origin: Origin,
}

impl ResultView {
    /// Creates an arena of `bytes` bytes for payloads of at most `longest` bytes. If the system
    /// refuses that size, it is halved until it succeeds: see [`len`](Self::len). The name appears
    /// only in `/proc`.
    ///
    /// # Errors
    /// If address space or descriptors run out.
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

    /// Returns the size of the arena in bytes, used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Returns the payload that a worker claims to have stored at a location. Returns `None` if no
    /// block can lie there or the payload is too long: then the worker has broken the protocol.
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

/// The descriptor for the worker, which writes through it.
impl AsFd for ResultView {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// A payload in a worker's arena. Dropping it lets the worker use the memory again.
///
/// A worker that lies may cause several loans of the same memory, or use memory again while it is
/// lent. Then it gets the memory back earlier, and the copies hold other bytes.
#[derive(Debug)]
pub struct Loan {
    view: Arc<ResultView>,
    /// Start of the block, where its flag is.
    start: usize,
    /// Allocated length in whole pages.
    taken: usize,
    length: usize,
}

impl Loan {
    /// Returns the length of the payload.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies `length` bytes from `at` on, in their current state.
    ///
    /// # Panics
    /// If the payload is too short.
    pub fn copy_to_vec(&self, at: usize, length: usize) -> Vec<u8> {
        let mut copy = Vec::new();
        self.copy_into(at, length, &mut copy);
        copy
    }

    /// Appends a copy of `length` bytes from `at` on, in their current state, to `into`.
    ///
    /// # Panics
    /// If the payload is too short.
    pub fn copy_into(&self, at: usize, length: usize, into: &mut Vec<u8>) {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(fits, "the bytes exceed the loan");
        let before = into.len();
        into.reserve_exact(length);
        self.view.mapping.read(self.start + HEADER + at, &mut into.spare_capacity_mut()[..length]);
        // SAFETY: there is room for them, and they were written just now.
        unsafe { into.set_len(before + length) };
    }

    /// Returns the number of bytes of the block that stay warm: all of them while little is lent.
    /// The worker may be idle, so only the host can release what exceeds that.
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
        // Release: the copies were made before. If the worker lies, this is a meaningless word in
        // memory that only that worker uses.
        self.view.mapping.word(self.start).store(flag, Ordering::Release);
    }
}
