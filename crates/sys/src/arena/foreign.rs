//! The arena of another worker, which this worker can only read.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::fstat;
use rustix::mm::ProtFlags;

use super::lent::LentBlock;
use super::mapping::{self, ArenaMapping, invalid};
use super::reference::ArenaRef;

/// The arena of another worker. It costs address space and nothing else.
#[derive(Debug)]
pub struct ForeignArena {
    arena: ArenaRef,
    mapping: Arc<ArenaMapping>,
}

impl ForeignArena {
    /// Maps an arena, whose descriptor the host has sent, and closes the descriptor.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor is that of another file; otherwise the system's error.
    pub fn open(descriptor: OwnedFd, arena: ArenaRef) -> io::Result<Self> {
        if fstat(&descriptor)?.st_ino != arena.inode {
            return Err(invalid("another file than the arena"));
        }
        let length = usize::try_from(arena.length).map_err(|_| invalid("the arena is too long"))?;
        let mapping = mapping::open(&descriptor, length, ProtFlags::READ)?;
        Ok(Self { arena, mapping: Arc::new(mapping) })
    }

    /// Returns the identity of the arena.
    pub fn reference(&self) -> ArenaRef {
        self.arena
    }

    /// Returns bytes that the host lends to this worker; `None` if they exceed the arena.
    pub fn lend(&self, offset: usize, length: usize) -> Option<LentBlock> {
        LentBlock::new(&self.mapping, offset, length)
    }
}
