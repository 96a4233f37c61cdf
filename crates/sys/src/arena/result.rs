//! A worker's side of its arena of results.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::fstat;
use rustix::mm::ProtFlags;

use super::budget::{AllocError, Protection, WhenFull};
use super::control::{self, Terms, Waiting};
use super::counters::BlockCounters;
use super::lent::LentBlock;
use super::mapping::{self, ArenaMapping, page_size, whole_pages};
use super::ranges::Ranges;
use super::reference::ArenaRef;
use super::result_block::{ResultBlock, whole_pages_of};
use super::{HEADER, RELEASED, WARM};
use crate::fork::Origin;
use crate::sync::Mutex;

/// The arena that one worker writes and the host reads.
#[derive(Debug)]
pub struct ResultArena {
    mapping: Arc<ArenaMapping>,
    inode: u64,
    pub(super) budget: usize,
    protection: Protection,
    pub(super) state: Mutex<State>,
    /// A task may fork: the copy of the worker may neither allocate nor free blocks here.
    origin: Origin,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) ranges: Ranges,
    /// Blocks without a handle that the host had not released yet.
    pub(super) lent: Vec<Block>,
    /// Bytes of all blocks that are not free.
    pub(super) used: usize,
}

/// Memory that was taken.
struct Place {
    range: Range<usize>,
    is_warm: bool,
}

/// A block, and how often messages have named it.
#[derive(Debug)]
pub(super) struct Block {
    /// All bytes, in whole pages.
    pub(super) range: Range<usize>,
    /// The header lies directly before the payload.
    pub(super) header: usize,
    /// Pages that this process can only read for now.
    pub(super) protected: Range<usize>,
    /// One of the [counters](super::counters). The other one is in the header: reaching that takes
    /// as long as the rest of a hand-over if the block is larger than the caches.
    pub(super) exported: AtomicU64,
    /// The value of `exported` before any message has named the block.
    unexported: u64,
}

impl Block {
    pub(super) fn new(range: Range<usize>, header: usize) -> Self {
        Self { range, header, protected: 0..0, exported: AtomicU64::new(0), unexported: 0 }
    }

    /// Moves the block out of a handle that is being dropped.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(0..0, 0))
    }

    /// Returns `true` if a message has named the block, or is about to.
    fn is_exported(&self) -> bool {
        self.exported.load(Ordering::Relaxed) != self.unexported
    }

    pub(super) fn payload(&self) -> usize {
        self.header + HEADER
    }
}

impl ResultArena {
    /// Maps the arena and closes the descriptor: a task may close all descriptors, and open its own
    /// files with the same numbers.
    ///
    /// # Errors
    /// `InvalidData` if it is not a sealed arena of `bytes` bytes; otherwise the system's error.
    pub fn open(descriptor: OwnedFd, bytes: usize, terms: Terms) -> io::Result<Arc<Self>> {
        let mapping = mapping::open(&descriptor, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        let blocks = bytes
            .checked_sub(control::length())
            .ok_or_else(|| mapping::invalid("the arena of results is too short"))?;
        let ranges = Ranges::new(blocks, terms.budget);
        Ok(Arc::new(Self {
            mapping: Arc::new(mapping),
            inode: fstat(&descriptor)?.st_ino,
            budget: terms.budget,
            protection: terms.protection,
            state: Mutex::new(State { ranges, lent: Vec::new(), used: 0 }),
            origin: Origin::here(),
        }))
    }

    /// Returns the identity of the arena, without a descriptor.
    pub fn reference(&self) -> ArenaRef {
        ArenaRef { inode: self.inode, length: self.mapping.len() as u64 }
    }

    /// Copies the parts one after the other into a new block, which the host releases. Returns
    /// their offset and total length, or `None` if there is no room or no memory.
    ///
    /// It may exceed the budget.
    pub fn put(&self, parts: &[&[u8]]) -> Option<(usize, usize)> {
        if !self.origin.is_here() {
            return None;
        }
        let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()))?;
        let taken = whole_pages(length.checked_add(HEADER)?)?;
        let place = self.take(&mut self.state.lock(), taken)?;
        let range = self.populate(place)?;
        let mut block = Block::new(range.clone(), range.start);
        let mut at = block.payload();
        for part in parts {
            // SAFETY: the mapping is writable, the bytes belong to a block that is part of no other
            // block, and nobody else knows of it yet.
            unsafe { self.mapping.write(at, part) };
            at += part.len();
        }
        self.begin(&mut block);
        // The host learns of the block by a message, and with the message it sees all of this.
        self.counters(&block).export();
        let offset = block.payload();
        self.state.lock().lent.push(block);
        Some((offset, length))
    }

    /// Allocates a block of `length` bytes with arbitrary content.
    ///
    /// # Errors
    /// If the budget is used up and `when_full` says so; if there is no memory; in a fork of the
    /// worker.
    pub fn allocate_block(
        self: &Arc<Self>,
        length: usize,
        when_full: WhenFull,
    ) -> Result<ResultBlock, AllocError> {
        if !self.origin.is_here() {
            return Err(AllocError::Forked);
        }
        let page = page_size();
        let taken = whole_pages(length).and_then(|pages| pages.checked_add(page));
        let taken = taken.ok_or(AllocError::OutOfMemory { length })?;
        let mut waiting: Option<Waiting<'_>> = None;
        loop {
            let seen = waiting.as_ref().map(Waiting::seen);
            {
                let mut state = self.state.lock();
                if self.admits(&mut state, taken, when_full) {
                    let place = self.take(&mut state, taken);
                    drop(state);
                    let range = place.and_then(|place| self.populate(place));
                    let range = range.ok_or(AllocError::OutOfMemory { length })?;
                    let mut block = Block::new(range.clone(), range.start + page - HEADER);
                    self.begin(&mut block);
                    return Ok(ResultBlock::new(self, block, length));
                }
                if when_full == WhenFull::Fail {
                    let (budget, used) = (self.budget, state.used);
                    return Err(AllocError::BudgetUsedUp { length, budget, used });
                }
            }
            // The first round has not announced anything: a release after it could go unnoticed.
            match (&waiting, seen) {
                (Some(waiting), Some(seen)) => waiting.sleep(seen),
                _ => waiting = Some(Waiting::announce(&self.mapping)),
            }
        }
    }

    /// Returns `true` if `taken` more bytes may be allocated.
    fn admits(&self, state: &mut State, taken: usize, when_full: WhenFull) -> bool {
        let fits =
            |state: &State| state.used.checked_add(taken).is_some_and(|used| used <= self.budget);
        if fits(state) {
            return true;
        }
        self.reclaim_into(state);
        fits(state)
            || match when_full {
                WhenFull::Exceed => true,
                // All blocks belong to this process, so the host has nothing to release.
                WhenFull::Wait => state.lent.is_empty(),
                WhenFull::Fail => state.used == 0,
            }
    }

    /// Returns bytes of a block of this arena that the host lends to this worker: it has come back
    /// as an argument. Returns `None` if they exceed the arena.
    pub fn lend(&self, offset: usize, length: usize) -> Option<LentBlock> {
        LentBlock::new(&self.mapping, offset, length)
    }

    /// Returns the number of bytes for blocks.
    pub(super) fn length(&self) -> usize {
        self.mapping.len() - control::length()
    }

    pub(super) fn mapping(&self) -> &ArenaMapping {
        &self.mapping
    }

    pub(super) fn counters<'a>(&'a self, block: &'a Block) -> BlockCounters<'a, AtomicU64> {
        let released = self.mapping.word(block.header + RELEASED);
        BlockCounters { exported: &block.exported, released }
    }

    fn begin(&self, block: &mut Block) {
        self.mapping.word(block.header + WARM).store(u64::MAX, Ordering::Relaxed);
        self.counters(block).begin();
        block.unexported = *block.exported.get_mut();
    }

    /// Takes the right to write a block's pages from this process if the arena's terms say so.
    pub(super) fn protect(&self, block: &mut Block, written: &Range<usize>) -> io::Result<()> {
        if self.protection == Protection::ReadOnly {
            // The header has a page of its own, so it stays writable.
            let pages = whole_pages_of(written, page_size());
            self.mapping.protect(pages.start, pages.len())?;
            block.protected = pages;
        }
        Ok(())
    }

    /// Frees a block that has no handle any more: at once if no message has named it, and otherwise
    /// when memory is needed and the host has released it.
    pub(super) fn leave(&self, block: Block) {
        if !self.origin.is_here() {
            return;
        }
        let mut state = self.state.lock();
        if block.is_exported() {
            state.lent.push(block);
        } else {
            self.free(&mut state, &block);
        }
        drop(state);
        // Another thread of this worker may wait, and the host may have released the block before.
        control::ring(&self.mapping);
    }

    /// Takes memory, warm if possible; looks at the host's releases only if it needs memory.
    fn take(&self, state: &mut State, length: usize) -> Option<Place> {
        let mut warm = state.ranges.take_warm(length);
        if warm.is_none() {
            self.reclaim_into(state);
            warm = state.ranges.take_warm(length);
        }
        let is_warm = warm.is_some();
        let start = warm.or_else(|| state.ranges.take(length))?;
        state.used += length;
        Some(Place { range: start..start + length, is_warm })
    }

    /// Gives memory to a place that is not warm; without the lock, because it takes its time.
    fn populate(&self, Place { range, is_warm }: Place) -> Option<Range<usize>> {
        if is_warm || self.mapping.populate(range.start, range.len()).is_ok() {
            return Some(range);
        }
        // Some of it may have its memory, and some has not.
        self.mapping.discard(range.start, range.len());
        let mut state = self.state.lock();
        state.used -= range.len();
        state.ranges.give_back_cold(range);
        None
    }

    /// Takes back the blocks that the host has released. Allocations do so when they need memory;
    /// until then released blocks keep their memory, at most the budget.
    pub fn reclaim(&self) {
        self.reclaim_into(&mut self.state.lock());
    }

    pub(super) fn reclaim_into(&self, state: &mut State) {
        let mut index = 0;
        while let Some(block) = state.lent.get(index) {
            if self.counters(block).is_released() {
                let block = state.lent.swap_remove(index);
                self.free(state, &block);
            } else {
                index += 1;
            }
        }
    }

    fn free(&self, state: &mut State, block: &Block) {
        if !block.protected.is_empty()
            && self.mapping.unprotect(block.protected.start, block.protected.len()).is_err()
        {
            // Nobody can use these pages any more.
            return;
        }
        let range = &block.range;
        state.used -= range.len();
        let warm = warm_part(self.mapping.word(block.header + WARM).load(Ordering::Relaxed), range);
        state.ranges.give_back_cold(range.start + warm..range.end);
        for leaving in state.ranges.give_back(range.start..range.start + warm) {
            self.mapping.discard(leaving.start, leaving.len());
            state.ranges.give_back_cold(leaving);
        }
    }
}

/// Returns the number of bytes of a block that the host has left warm, in whole pages.
fn warm_part(word: u64, block: &Range<usize>) -> usize {
    let warm = usize::try_from(word).unwrap_or(usize::MAX).min(block.len());
    warm - warm % page_size()
}

#[cfg(test)]
mod tests {
    use super::super::mapping;
    use super::*;

    impl ResultArena {
        /// Returns the bytes that the blocks of the arena take.
        pub(in crate::arena) fn used(&self) -> usize {
            self.state.lock().used
        }
    }

    #[test]
    fn a_block_without_memory_does_not_count_as_warm() -> io::Result<()> {
        let (descriptor, _) = mapping::create("test", 1 << 20)?;
        let arena = ResultArena::open(descriptor, 1 << 20, Terms::default())?;
        arena.mapping.spoil_page(16 * page_size())?;
        for _ in 0..2 {
            assert!(arena.put(&[&vec![1; 1 << 19]]).is_none());
            assert_eq!(arena.state.lock().used, 0);
        }
        Ok(())
    }
}
