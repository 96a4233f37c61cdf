//! The host's side of the arena of arguments.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fchmod, open};

use super::KEPT;
use super::mapping::{self, Mapping, whole_pages};
use super::ranges::Ranges;
use crate::fork::Origin;
use crate::sync::{Mutex, MutexGuard};

/// The arena that the host writes and all workers of a pool read.
#[derive(Debug)]
pub struct ArgumentArena {
    mapping: Mapping,
    readers: OwnedFd,
    ranges: Mutex<Ranges>,
    /// A fork of the process may neither allocate nor free blocks here.
    origin: Origin,
}

impl ArgumentArena {
    /// Creates an arena of `bytes` bytes. If the system refuses that, the size is halved until it
    /// succeeds: see [`len`](Self::len). The name appears only in `/proc`.
    ///
    /// # Errors
    /// If address space or descriptors run out, or there is no `/proc`.
    pub fn create(name: &str, bytes: usize) -> io::Result<Arc<Self>> {
        let (writers, mapping) = mapping::create(name, bytes)?;
        // This descriptor allows no writing, and its holder cannot reopen the file for writing
        // either (unless it is root). The writable descriptor is closed at the end of this
        // function; our mapping stays writable.
        fchmod(&writers, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", writers.as_raw_fd());
        let readers = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let ranges = Mutex::new(Ranges::new(mapping.len(), KEPT));
        Ok(Arc::new(Self { mapping, readers, ranges, origin: Origin::here() }))
    }

    /// Returns the size of the arena in bytes, used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// Allocates a block of `length` bytes with arbitrary content. Returns `None` if there is no
    /// room or no memory, and in a fork of the process.
    pub fn allocate(self: &Arc<Self>, length: usize) -> Option<ArgumentBlock> {
        if !self.origin.is_here() {
            return None;
        }
        let taken = whole_pages(length)?;
        let (start, is_warm) = {
            let mut ranges = self.ranges();
            match ranges.take_warm(taken) {
                Some(start) => (start, true),
                None => (ranges.take(taken)?, false),
            }
        };
        if !is_warm && self.mapping.populate(start, taken).is_err() {
            // Some of it may have its memory, and some has not.
            self.mapping.discard(start, taken);
            self.ranges().give_back_cold(start..start + taken);
            return None;
        }
        Some(ArgumentBlock(SharedBlock { arena: Arc::clone(self), start, taken, length }))
    }

    /// Allocates a block and writes the parts to it, one after the other.
    pub fn put(self: &Arc<Self>, parts: &[&[u8]]) -> Option<SharedBlock> {
        let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()))?;
        let mut block = self.allocate(length)?;
        let mut at = 0;
        for part in parts {
            block.fill(at, part);
            at += part.len();
        }
        Some(block.freeze())
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        // No code panics halfway through a change of the ranges.
        self.ranges.lock()
    }
}

/// The descriptor for workers, through which the arena can be read and not written.
impl AsFd for ArgumentArena {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readers.as_fd()
    }
}

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

    /// Writes bytes from `at` on.
    ///
    /// # Panics
    /// If the block is too short.
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        let block = &self.0;
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= block.length);
        assert!(fits, "the bytes exceed the block");
        // SAFETY: the host's mapping is writable. The block is part of no other block and was not
        // handed out yet, so there is no reference to its bytes.
        unsafe { block.arena.mapping.write(block.start + at, bytes) };
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
    /// Returns the offset of the block in the arena.
    pub fn offset(&self) -> usize {
        self.start
    }

    /// Returns the requested length.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for an empty block")]
    pub fn len(&self) -> usize {
        self.length
    }
}

impl SharedBlock {
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
        let leaving = self.arena.ranges().give_back(self.start..self.start + self.taken);
        for range in leaving {
            // Without the lock, because the system takes its time.
            self.arena.mapping.discard(range.start, range.len());
            self.arena.ranges().give_back_cold(range);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_memory_does_not_count_as_warm() -> io::Result<()> {
        let arena = ArgumentArena::create("test", 1 << 20)?;
        arena.mapping.spoil_page(16 * mapping::page_size())?;
        for _ in 0..2 {
            assert!(arena.allocate(1 << 19).is_none());
            assert_eq!(rustix::fs::fstat(&arena.readers)?.st_blocks, 0, "nothing is kept");
        }
        Ok(())
    }
}
