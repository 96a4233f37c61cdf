//! The blocks that tasks of a worker write, and share with the host after that.

use std::ops::Range;
use std::sync::Arc;

use super::result::{Block, ResultArena};

/// A block of a worker's arena that is being written. Dropping it frees it.
#[derive(Debug)]
pub struct ResultBlock(FrozenBlock);

/// A block of a worker's arena that is no longer written. After it was dropped, its memory is used
/// again as soon as the host has released it too. It can be dropped by any thread.
#[derive(Debug)]
pub struct FrozenBlock {
    arena: Arc<ResultArena>,
    block: Block,
    offset: usize,
    length: usize,
}

impl ResultBlock {
    pub(super) fn new(arena: &Arc<ResultArena>, block: Block, length: usize) -> Self {
        let offset = block.payload();
        Self(FrozenBlock { arena: Arc::clone(arena), block, offset, length })
    }

    /// Returns the bytes, which have arbitrary values at first.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the bytes, to be written.
    pub fn as_mut_bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping is writable. The block is part of no other block, its only handle is
        // borrowed, and the host does not know of it yet.
        unsafe { self.0.arena.mapping().bytes_mut(self.0.offset, self.0.length) }
    }

    /// Ends writing. At [`Protection::ReadOnly`](super::Protection::ReadOnly) the bytes can no
    /// longer be written after this.
    ///
    /// # Errors
    /// The block itself if it could not be protected, because the process has too many mappings.
    pub fn freeze(mut self) -> Result<FrozenBlock, Self> {
        let written = self.0.offset..self.0.offset + self.0.length;
        match self.0.arena.protect(&mut self.0.block, &written) {
            Ok(()) => Ok(self.0),
            Err(_) => Err(self),
        }
    }
}

impl FrozenBlock {
    /// Returns the arena of the block.
    pub fn arena(&self) -> &Arc<ResultArena> {
        &self.arena
    }

    /// Returns the offset of the first byte in the arena.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block belongs to this handle, and only a `ResultBlock` can write to it: it is
        // borrowed by the caller, or was consumed. The host only reads.
        unsafe { self.arena.mapping().bytes(self.offset, self.length) }
    }

    /// Counts a message that names the block, before it is sent: the block stays in use until the
    /// host has released that message's loan.
    pub fn export(&self) {
        self.arena.counters(&self.block).export();
    }

    /// Returns `true` if the host has released the block as often as messages have named it.
    pub(super) fn is_released(&self) -> bool {
        self.arena.counters(&self.block).is_released()
    }

    /// Takes back an [`export`](Self::export) whose message was not sent.
    pub fn undo_export(&self) {
        self.arena.counters(&self.block).undo_export();
    }
}

impl Drop for FrozenBlock {
    fn drop(&mut self) {
        self.arena.leave(self.block.take());
    }
}

/// Returns the whole pages of a range.
pub(super) fn whole_pages_of(range: &Range<usize>, page: usize) -> Range<usize> {
    range.start - range.start % page..range.end.next_multiple_of(page)
}
