//! A worker's side of its arena of results.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::mm::ProtFlags;

use super::mapping::{self, Mapping, page_size, whole_pages};
use super::ranges::Ranges;
use super::{HEADER, IN_USE, KEPT, RELEASED};

/// The arena that one worker writes and the host reads.
#[derive(Debug)]
pub struct ResultArena {
    mapping: Mapping,
    ranges: Ranges,
    /// Blocks whose flag was set and not yet seen to be cleared.
    in_use: Vec<Range<usize>>,
}

impl ResultArena {
    /// Maps the arena and closes the descriptor: a task may close all descriptors, and open its own
    /// files with the same numbers.
    ///
    /// # Errors
    /// `InvalidData` if it is not a sealed arena of `bytes` bytes; otherwise the system's error.
    pub fn open(descriptor: OwnedFd, bytes: usize) -> io::Result<Self> {
        let mapping = mapping::open(&descriptor, bytes, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { mapping, ranges: Ranges::new(bytes, KEPT), in_use: Vec::new() })
    }

    /// Copies the parts one after the other into a new block. Returns their offset and total
    /// length, or `None` if there is no room or no memory.
    pub fn put(&mut self, parts: &[&[u8]]) -> Option<(usize, usize)> {
        let length = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len()))?;
        let block = self.allocate(whole_pages(length.checked_add(HEADER)?)?)?;
        let offset = block.start + HEADER;
        let mut at = offset;
        for part in parts {
            // SAFETY: the mapping is writable, the bytes belong to a block that is part of no other
            // block, and this type hands out no reference into its mapping.
            unsafe { self.mapping.write(at, part) };
            at += part.len();
        }
        // The host learns of the block by a message, and with the message it sees all of this.
        self.mapping.word(block.start).store(IN_USE, Ordering::Release);
        self.in_use.push(block);
        Some((offset, length))
    }

    /// Allocates memory, warm if possible; looks at the host's releases only if it needs memory.
    fn allocate(&mut self, taken: usize) -> Option<Range<usize>> {
        let mut warm = self.ranges.take_warm(taken);
        if warm.is_none() {
            self.reclaim();
            warm = self.ranges.take_warm(taken);
        }
        if let Some(start) = warm {
            return Some(start..start + taken);
        }
        let start = self.ranges.take(taken)?;
        let block = start..start + taken;
        if self.mapping.populate(start, taken).is_err() {
            // Some of it may have its memory, and some has not.
            self.mapping.discard(start, taken);
            self.ranges.give_back_cold(block);
            return None;
        }
        Some(block)
    }

    /// Takes back the blocks that the host has released. [`put`](Self::put) does so when it needs
    /// memory; until then released blocks keep their memory, at most [`KEPT`] bytes of it.
    pub fn reclaim(&mut self) {
        let mut index = 0;
        while let Some(block) = self.in_use.get(index) {
            // Acquire: the host stored this after it had copied what it wanted.
            match self.mapping.word(block.start).load(Ordering::Acquire) {
                IN_USE => index += 1,
                flag => {
                    let block = self.in_use.swap_remove(index);
                    let warm = if flag == RELEASED { block.len() } else { warm_part(flag, &block) };
                    self.ranges.give_back_cold(block.start + warm..block.end);
                    self.give_back(block.start..block.start + warm);
                }
            }
        }
    }

    fn give_back(&mut self, range: Range<usize>) {
        for leaving in self.ranges.give_back(range) {
            self.mapping.discard(leaving.start, leaving.len());
            self.ranges.give_back_cold(leaving);
        }
    }
}

/// Returns the number of bytes of a block that the host has left warm, in whole pages.
fn warm_part(flag: u64, block: &Range<usize>) -> usize {
    let warm = usize::try_from(flag).unwrap_or(usize::MAX).min(block.len());
    warm - warm % page_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_without_memory_does_not_count_as_warm() -> io::Result<()> {
        let (descriptor, _host) = mapping::create("test", 1 << 20)?;
        let mut arena = ResultArena::open(descriptor, 1 << 20)?;
        arena.mapping.spoil_page(16 * page_size())?;
        for _ in 0..2 {
            assert!(arena.put(&[&vec![1; 1 << 19]]).is_none());
        }
        Ok(())
    }
}
