//! The host's side of the arguments.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{Mode, OFlags, fchmod, open};

use super::KEPT;
use super::mapping::{self, Mapping, whole_pages};
use super::ranges::Ranges;
use crate::fork::Origin;

/// The arena that the host writes and all workers of a pool read.
#[derive(Debug)]
pub struct ArgumentArena {
    mapping: Mapping,
    readers: OwnedFd,
    ranges: Mutex<Ranges>,
    /// A fork of the process may neither allocate here nor give anything back.
    origin: Origin,
}

impl ArgumentArena {
    /// An arena of `bytes` bytes; of half as many, and so on, when the system refuses that: see [`len`](Self::len).
    /// The name is seen in `/proc` only.
    ///
    /// # Errors
    /// When address space or descriptors run out, or there is no `/proc`.
    pub fn create(name: &str, bytes: usize) -> io::Result<Arc<Self>> {
        let (writers, mapping) = mapping::create(name, bytes)?;
        // Through this descriptor nobody can write, and who has it cannot open the file anew for writing either (if it is
        // not root). The one that can write is closed at the end of this function; our mapping stays writable.
        fchmod(&writers, Mode::RUSR)?;
        let path = format!("/proc/self/fd/{}", writers.as_raw_fd());
        let readers = open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let ranges = Mutex::new(Ranges::new(mapping.len(), KEPT));
        Ok(Arc::new(Self { mapping, readers, ranges, origin: Origin::here() }))
    }

    /// How many bytes the arena has, whether they are used or not.
    #[expect(clippy::len_without_is_empty, reason = "an arena is never empty")]
    pub fn len(&self) -> usize {
        self.mapping.len()
    }

    /// A block of `length` bytes, whose content is whatever was there before. `None` when there is no room, or no memory,
    /// and in a fork of the process.
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

    /// A block with these bytes, one part after the other.
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
        // Nothing in there panics halfway through a change.
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What workers get: a descriptor through which the arena can be read and not written.
impl AsFd for ArgumentArena {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readers.as_fd()
    }
}

/// A block that is being written. Dropped, it gives its memory back.
#[derive(Debug)]
pub struct ArgumentBlock(SharedBlock);

impl ArgumentBlock {
    /// Where it lies in the arena.
    pub fn offset(&self) -> usize {
        self.0.start
    }

    /// Its length as it was asked for.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for an empty block")]
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Writes bytes from `at` on.
    ///
    /// # Panics
    /// When the block ends before the bytes do.
    pub fn fill(&mut self, at: usize, bytes: &[u8]) {
        let block = &self.0;
        let fits = at.checked_add(bytes.len()).is_some_and(|end| end <= block.length);
        assert!(fits, "bytes beyond their block");
        // SAFETY: the host's mapping is writable. The block is part of no other block and was handed to nobody yet, so
        // that there is no reference to its bytes.
        unsafe { block.arena.mapping.write(block.start + at, bytes) };
    }

    /// From now on it can be read by others, and not be written any more.
    pub fn freeze(self) -> SharedBlock {
        self.0
    }
}

/// A block that workers may read. Dropped, it gives its memory back: keep it until the worker has answered.
#[derive(Debug)]
pub struct SharedBlock {
    arena: Arc<ArgumentArena>,
    start: usize,
    /// Whole pages.
    taken: usize,
    length: usize,
}

impl SharedBlock {
    /// Where it lies in the arena.
    pub fn offset(&self) -> usize {
        self.start
    }

    /// Its length as it was asked for.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks for an empty block")]
    pub fn len(&self) -> usize {
        self.length
    }
}

impl SharedBlock {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block is ours until it is dropped, it was written before it became one that is shared, and nobody
        // else can write to the arena.
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
    fn a_block_without_memory_is_not_taken_for_a_warm_one() -> io::Result<()> {
        let arena = ArgumentArena::create("test", 1 << 20)?;
        arena.mapping.spoil_page(16 * mapping::page_size())?;
        for _ in 0..2 {
            assert!(arena.allocate(1 << 19).is_none());
            assert_eq!(rustix::fs::fstat(&arena.readers)?.st_blocks, 0, "nothing is kept");
        }
        Ok(())
    }
}
