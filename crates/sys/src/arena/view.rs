//! A worker's side of the arena of arguments.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::mm::ProtFlags;

use super::lent::LentBlock;
use super::mapping::{self, ArenaMapping, invalid};

/// The arena that the host writes, as a worker sees it: it can only be read.
#[derive(Debug)]
pub struct ArgumentView(Arc<ArenaMapping>);

impl ArgumentView {
    /// Maps the arena and closes the descriptor, so that this process has no way to write to it.
    ///
    /// # Errors
    /// `InvalidData` if it is not a sealed arena of `bytes` bytes, or could be written through this
    /// descriptor; otherwise the system's error.
    pub fn open(descriptor: OwnedFd, bytes: usize) -> io::Result<Self> {
        if fcntl_getfl(&descriptor)? & OFlags::RWMODE != OFlags::RDONLY {
            return Err(invalid("the arena of arguments is writable"));
        }
        mapping::open(&descriptor, bytes, ProtFlags::READ).map(Arc::new).map(Self)
    }

    /// Returns the bytes of a block that the host has sent a message about; `None` if the location
    /// is out of range.
    pub fn bytes(&self, offset: usize, length: usize) -> Option<&[u8]> {
        if !self.0.contains(offset, length) {
            return None;
        }
        // SAFETY: only the host writes to the arena: all other processes have it by a descriptor,
        // and so a mapping, without write access. The host, which a worker trusts, sends the
        // location of the block in a message. It has written the block before, and neither writes
        // there nor frees the block until it has received the outcome, which is sent after the last
        // use of these bytes.
        Some(unsafe { self.0.bytes(offset, length) })
    }

    /// Returns bytes of a block that the host lends to this worker; `None` if the location is out
    /// of range.
    pub fn lend(&self, offset: usize, length: usize) -> Option<LentBlock> {
        LentBlock::new(&self.0, offset, length)
    }
}
