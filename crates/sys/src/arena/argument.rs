//! The host's side of the arena of arguments.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fchmod, open};

use super::budget::{AllocError, WhenFull};
use super::loan::Loan;
use super::mapping::{self, ArenaMapping, whole_pages};
use super::ranges::Ranges;
use crate::fork::Origin;
use crate::sync::{Condvar, Mutex};

/// The arena that the host writes and all workers of a pool read.
#[derive(Debug)]
pub struct ArgumentArena {
    mapping: ArenaMapping,
    readers: OwnedFd,
    budget: usize,
    state: Mutex<State>,
    /// Notified when memory was freed.
    freed: Condvar,
    /// A fork of the process may neither allocate nor free blocks here.
    origin: Origin,
}

#[derive(Debug)]
struct State {
    ranges: Ranges,
    /// Bytes of all blocks.
    used: usize,
    /// Threads that wait for memory.
    waiting: usize,
}

impl ArgumentArena {
    /// Creates an arena of `bytes` bytes, whose blocks may take `budget` bytes before an allocation
    /// waits; this much free memory stays warm. If the system refuses the size, it is halved until
    /// it succeeds: see [`len`](Self::len). The name appears only in `/proc`.
    ///
    /// # Errors
    /// If address space or descriptors run out, or there is no `/proc`.
    pub fn create(name: &str, bytes: usize, budget: usize) -> io::Result<Arc<Self>> {
        let (writers, mapping) = mapping::create(name, bytes)?;
        // This descriptor allows no writing, and its holder cannot reopen the file for writing
        // either (unless it is root). The writable descriptor is closed at the end of this
        // function; our mapping stays writable.
        fchmod(&writers, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", writers.as_raw_fd());
        let readers = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let ranges = Ranges::new(mapping.len(), budget);
        let state = Mutex::new(State { ranges, used: 0, waiting: 0 });
        let (freed, origin) = (Condvar::new(), Origin::here());
        Ok(Arc::new(Self { mapping, readers, budget, state, freed, origin }))
    }

    /// Returns the size of the arena in bytes, used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Allocates a block of `length` bytes with arbitrary content. Returns `None` if there is no
    /// room or no memory, and in a fork of the process. It may exceed the budget.
    pub fn allocate(self: &Arc<Self>, length: usize) -> Option<ArgumentBlock> {
        self.allocate_within_budget(length, WhenFull::Exceed).ok()
    }

    /// Allocates a block of `length` bytes with arbitrary content.
    ///
    /// # Errors
    /// If the budget is used up and `when_full` says so; if there is no memory; in a fork of the
    /// process.
    pub fn allocate_within_budget(
        self: &Arc<Self>,
        length: usize,
        when_full: WhenFull,
    ) -> Result<ArgumentBlock, AllocError> {
        if !self.origin.is_here() {
            return Err(AllocError::Forked);
        }
        let out_of_memory = AllocError::OutOfMemory { length };
        let taken = whole_pages(length).ok_or(out_of_memory)?;
        let (start, is_warm) = {
            let mut state = self.state.lock();
            while state.used != 0 && state.used.saturating_add(taken) > self.budget {
                match when_full {
                    WhenFull::Exceed => break,
                    WhenFull::Fail => {
                        let (budget, used) = (self.budget, state.used);
                        return Err(AllocError::BudgetUsedUp { length, budget, used });
                    }
                    WhenFull::Wait => {
                        state.waiting += 1;
                        state = self.freed.wait(state);
                        state.waiting -= 1;
                    }
                }
            }
            let warm = state.ranges.take_warm(taken);
            let is_warm = warm.is_some();
            let start = warm.or_else(|| state.ranges.take(taken)).ok_or(out_of_memory)?;
            state.used += taken;
            (start, is_warm)
        };
        if !is_warm && self.mapping.populate(start, taken).is_err() {
            // Some of it may have its memory, and some has not.
            self.mapping.discard(start, taken);
            self.end_use(taken, |ranges| ranges.give_back_cold(start..start + taken));
            return Err(out_of_memory);
        }
        Ok(ArgumentBlock(SharedBlock { arena: Arc::clone(self), start, taken, length }))
    }

    /// Copies a payload of a worker to where no worker can write.
    pub fn copy(self: &Arc<Self>, loan: &Loan) -> Option<SharedBlock> {
        let mut block = self.allocate(loan.len())?;
        loan.copy_to_slice(block.as_mut_bytes());
        Some(block.freeze())
    }

    /// Allocates a block and writes the parts to it, one after the other.
    pub fn put(self: &Arc<Self>, parts: &[&[u8]]) -> Option<SharedBlock> {
        let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()))?;
        let block = self.allocate(length)?;
        let mut at = block.offset();
        for part in parts {
            // SAFETY: the host's mapping is writable. The block is part of no other block, there
            // is no reference to its bytes, and it was not handed out yet.
            unsafe { self.mapping.write(at, part) };
            at += part.len();
        }
        Some(block.freeze())
    }

    /// Frees `taken` bytes; `f` gives them back.
    fn end_use<T>(&self, taken: usize, f: impl FnOnce(&mut Ranges) -> T) -> T {
        // No code panics halfway through a change.
        let mut state = self.state.lock();
        state.used -= taken;
        let result = f(&mut state.ranges);
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.freed.notify_all();
        }
        result
    }
}

// The descriptor for workers, through which the arena can be read and not written.
crate::as_fd!(ArgumentArena, readers);

/// A block that is being written. Dropping it frees its memory.
#[derive(Debug)]
pub struct ArgumentBlock(SharedBlock);

impl ArgumentBlock {
    /// Returns the offset of the block in the arena.
    pub fn offset(&self) -> usize {
        self.0.start
    }

    /// Returns the requested length.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for an empty block")]
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Returns the bytes, which have arbitrary values at first.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the bytes, to be written.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        let block = &self.0;
        // SAFETY: the host's mapping is writable. The block is part of no other block, its only
        // handle is borrowed, and it was not handed out yet.
        unsafe { block.arena.mapping.bytes_mut(block.start, block.length) }
    }

    /// Makes the block readable for others and ends writing.
    pub fn freeze(self) -> SharedBlock {
        self.0
    }
}

/// A block that workers may read. Dropping it frees its memory: keep it until the worker has sent
/// the outcome.
#[derive(Debug)]
pub struct SharedBlock {
    arena: Arc<ArgumentArena>,
    start: usize,
    /// Allocated length in whole pages.
    taken: usize,
    length: usize,
}

impl SharedBlock {
    /// Returns `true` if the block lies in this arena.
    pub fn is_in(&self, arena: &Arc<ArgumentArena>) -> bool {
        Arc::ptr_eq(&self.arena, arena)
    }

    /// Returns the offset of the block in the arena.
    pub fn offset(&self) -> usize {
        self.start
    }

    /// Returns the requested length.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for an empty block")]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns the bytes of the block.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block is ours until it is dropped, it was written before it became a shared
        // one, and nobody else can write to the arena.
        unsafe { self.arena.mapping.bytes(self.start, self.length) }
    }
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        if !self.arena.origin.is_here() {
            return;
        }
        let range = self.start..self.start + self.taken;
        for range in self.arena.end_use(self.taken, |ranges| ranges.give_back(range)) {
            // Without the lock, because the system takes its time.
            self.arena.mapping.discard(range.start, range.len());
            self.arena.state.lock().ranges.give_back_cold(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ArgumentArena {
        /// Returns the number of threads that wait for memory of the arena.
        pub(in crate::arena) fn waiting(&self) -> usize {
            self.state.lock().waiting
        }
    }

    #[test]
    fn a_block_without_memory_does_not_count_as_warm() -> io::Result<()> {
        let arena = ArgumentArena::create("test", 1 << 20, 1 << 20)?;
        arena.mapping.spoil_page(16 * mapping::page_size())?;
        for _ in 0..2 {
            assert!(arena.allocate(1 << 19).is_none());
            assert_eq!(rustix::fs::fstat(&arena.readers)?.st_blocks, 0, "nothing is kept");
        }
        Ok(())
    }
}
