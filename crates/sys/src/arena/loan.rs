//! The host's side of a worker's arena of results.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{Mode, OFlags, fstat, open};

use super::control::{self, Terms};
use super::counters;
use super::loans::Loans;
use super::mapping::{self, ArenaMapping, page_size, whole_pages};
use super::reach::{KnownReader, OFFERED};
use super::reference::ArenaRef;
use super::{HEADER, RELEASED, WARM};
use crate::fork::Origin;
use crate::memory;
use crate::numbers::{Numbers, Unit};
use crate::sync::Mutex;

/// The arena that one worker writes, as the host sees it.
#[derive(Debug)]
pub struct ResultView {
    descriptor: OwnedFd,
    inode: u64,
    mapping: ArenaMapping,
    /// Maximum number of bytes of a payload.
    longest: usize,
    terms: Terms,
    loans: Mutex<Loans>,
    reader: KnownReader,
    /// A fork of the process may not release anything.
    origin: Origin,
}

impl ResultView {
    /// Creates an arena with `bytes` bytes for blocks, for payloads of at most `longest` bytes. If
    /// the system refuses that size, it is halved until it succeeds: see [`len`](Self::len), which
    /// includes a page for the terms. The name appears only in `/proc`.
    ///
    /// # Errors
    /// If address space or descriptors run out.
    pub fn create(name: &str, bytes: usize, longest: usize, terms: Terms) -> io::Result<Arc<Self>> {
        let with_control = bytes.saturating_add(control::length());
        let (descriptor, mapping) = mapping::create(name, with_control)?;
        let inode = fstat(&descriptor)?.st_ino;
        Ok(Arc::new(Self {
            descriptor,
            inode,
            mapping,
            longest,
            terms,
            loans: Mutex::default(),
            reader: KnownReader::default(),
            origin: Origin::here(),
        }))
    }

    /// Returns the size of the arena in bytes, used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Sets the process that writes the arena. If this process may read its memory, it gets large
    /// payloads from there.
    pub fn set_worker(&self, pid: u32) {
        self.reader.set_worker(pid);
    }

    /// Returns the terms of the arena.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Returns the identity of the arena, by which other workers recognize it.
    pub fn reference(&self) -> ArenaRef {
        ArenaRef { inode: self.inode, length: self.len() as u64 }
    }

    /// Returns a descriptor through which another worker can read the arena and not write it.
    ///
    /// # Errors
    /// If descriptors run out, or this process has no `/proc` any more.
    pub fn for_reader(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
        Ok(open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Returns the payload that a worker claims to have stored at a location. Returns `None` if no
    /// payload can lie there or it is too long: then the worker has broken the protocol.
    pub fn loan(self: &Arc<Self>, offset: usize, length: usize) -> Option<Loan> {
        // A payload lies behind its header, at the start of the block.
        let is_payload = offset.checked_sub(HEADER)?.is_multiple_of(page_size());
        if !is_payload || length > self.longest {
            return None;
        }
        if length >= OFFERED {
            self.reader.decide(control::offers(&self.mapping));
        }
        self.lend(offset, length, false)
    }

    /// Returns the buffer that a worker claims to have at a location. Returns `None` if no buffer
    /// can lie there: then the worker has broken the protocol. A buffer may have any length.
    pub fn loan_buffer(self: &Arc<Self>, offset: usize, length: usize) -> Option<Loan> {
        // A buffer lies behind a page with its header at the end.
        if !offset.is_multiple_of(page_size()) {
            return None;
        }
        self.lend(offset, length, true)
    }

    fn lend(self: &Arc<Self>, offset: usize, length: usize, is_buffer: bool) -> Option<Loan> {
        let header = offset.checked_sub(HEADER)?;
        let end = offset.checked_add(length).filter(|end| *end <= self.blocks().end)?;
        let start = header - header % page_size();
        let block = start..start + whole_pages(end - start)?;
        if self.origin.is_here() {
            self.loans.lock().lend(&block);
        }
        Some(Loan { view: Arc::clone(self), block, offset, length, is_buffer })
    }

    /// Gives all memory back to the system that is not lent, and the rest when its last loan is
    /// dropped. Call it when the worker has died and all of its messages were taken.
    pub fn bury(&self) {
        if self.origin.is_here() {
            let free = self.loans.lock().bury(&self.blocks());
            // Usually it was never used, and looking is cheaper than discarding.
            if fstat(&self.descriptor).is_ok_and(|status| status.st_blocks > 0) {
                self.discard(free);
            }
        }
    }

    fn discard(&self, ranges: Vec<Range<usize>>) {
        for range in ranges {
            self.mapping.discard(range.start, range.len());
        }
    }

    pub(super) fn reader(&self) -> &KnownReader {
        &self.reader
    }

    pub(super) fn mapping(&self) -> &ArenaMapping {
        &self.mapping
    }

    /// Returns the bytes for blocks: all but the control page.
    fn blocks(&self) -> Range<usize> {
        0..self.mapping.len() - control::length()
    }
}

// The descriptor for the worker, which writes through it.
crate::as_fd!(ResultView, descriptor);

/// Gives back the memory even if another worker still maps it.
impl Drop for ResultView {
    fn drop(&mut self) {
        self.bury();
    }
}

/// A payload in a worker's arena. Dropping it lets the worker use the memory again.
///
/// A worker that lies may cause several loans of the same memory, or use memory again while it is
/// lent. Then it gets the memory back earlier, and the copies hold other bytes.
#[derive(Debug)]
pub struct Loan {
    view: Arc<ResultView>,
    /// All of the block, in whole pages.
    block: Range<usize>,
    offset: usize,
    length: usize,
    /// `true` if the worker may have handles of the block too.
    is_buffer: bool,
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

    /// Returns the arena of the payload.
    pub fn view(&self) -> &ResultView {
        &self.view
    }

    /// Returns the offset of the payload in its arena.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the bytes where they lie. The [module](super) says for which blocks this is allowed
    /// and what the host relies on.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the worker has consumed its only handle that can write before it named the block,
        // and does not reuse the block before this loan is dropped. The host relies on the absence
        // of undefined behavior in the worker, as with memory that two threads share, and at
        // `Protection::ReadOnly` also on the page tables. Where it must not, it takes a copy.
        unsafe { self.view.mapping.bytes(self.offset, self.length) }
    }

    /// Copies all bytes, in their current state.
    ///
    /// # Panics
    /// If `into` has another length.
    pub fn copy_to_slice(&self, into: &mut [u8]) {
        assert_eq!(into.len(), self.length, "the payload has another length");
        // SAFETY: initialized bytes may be seen as uninitialized ones as long as only initialized
        // ones are written, which `read` does.
        let into = unsafe { &mut *(std::ptr::from_mut(into) as *mut [MaybeUninit<u8>]) };
        self.view.mapping.read(self.offset, into);
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

    /// Copies numbers from `at` on, of `length` bytes together, in their current state. Returns
    /// `None` if the last one would not be whole.
    ///
    /// # Panics
    /// If the payload is too short.
    pub fn copy_to_numbers(&self, at: usize, length: usize, unit: Unit) -> Option<Numbers> {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(fits, "the bytes exceed the loan");
        let mut copy = Numbers::with_capacity(unit, unit.count(length)?);
        self.view.mapping.read(self.offset + at, &mut copy.spare()[..length]);
        // SAFETY: there is room for them, and they were written just now.
        unsafe { copy.set_byte_len(length) };
        Some(copy)
    }

    /// Appends a copy of `length` bytes from `at` on, in their current state, to `into`.
    ///
    /// # Panics
    /// If the payload is too short.
    pub fn copy_into(&self, at: usize, length: usize, into: &mut Vec<u8>) {
        let fits = at.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(fits, "the bytes exceed the loan");
        let before = into.len();
        if into.capacity() == 0 {
            *into = memory::vec_with_capacity(length);
        }
        into.reserve_exact(length);
        self.view.mapping.read(self.offset + at, &mut into.spare_capacity_mut()[..length]);
        // SAFETY: there is room for them, and they were written just now.
        unsafe { into.set_len(before + length) };
    }

    /// Returns the number of bytes of the block that stay warm: all of them while little is lent.
    /// The worker may be idle, so only the host can release what exceeds that.
    fn keep(&self, others: usize) -> usize {
        let kept = self.view.terms.budget.saturating_sub(others);
        let taken = self.block.len();
        // The worker may still use a buffer. The page with the header is going to be written
        // anyway.
        if self.is_buffer || kept >= taken { taken } else { whole(kept).max(page_size()) }
    }
}

fn whole(bytes: usize) -> usize {
    bytes - bytes % page_size()
}

impl Drop for Loan {
    fn drop(&mut self) {
        if !self.view.origin.is_here() {
            return;
        }
        let mapping = &self.view.mapping;
        let (free, others) = {
            let mut loans = self.view.loans.lock();
            (loans.end(&self.block), loans.total())
        };
        let kept = self.keep(others);
        let header = self.offset - HEADER;
        if kept < self.block.len() {
            mapping.discard(self.block.start + kept, self.block.len() - kept);
            mapping.word(header + WARM).store(kept as u64, Ordering::Relaxed);
        }
        // If the worker lies, this counts in a word that only that worker uses.
        counters::release(mapping.word(header + RELEASED));
        control::ring(mapping);
        self.view.discard(free);
    }
}
