//! A worker's side of the arguments.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, fcntl_getfl};
use rustix::mm::ProtFlags;

use super::mapping::{self, Mapping, invalid};

/// The arena that the host writes, as a worker sees it: it can be read and nothing else.
#[derive(Debug)]
pub struct ArgumentView(Mapping);

impl ArgumentView {
    /// Maps the arena and closes the descriptor, so that this process has no way to write to it.
    ///
    /// # Errors
    /// `InvalidData` when it is not a sealed arena of so many bytes, or could be written through this descriptor; else what
    /// the system says.
    pub fn open(descriptor: OwnedFd, bytes: usize) -> io::Result<Self> {
        if fcntl_getfl(&descriptor)? & OFlags::RWMODE != OFlags::RDONLY {
            return Err(invalid("an arena of arguments that this process could write"));
        }
        mapping::open(&descriptor, bytes, ProtFlags::READ).map(Self)
    }

    /// The bytes of a block that the host has sent a message about. `None` when there is no such place.
    pub fn bytes(&self, offset: usize, length: usize) -> Option<&[u8]> {
        if !self.0.contains(offset, length) {
            return None;
        }
        // SAFETY: only the host writes to the arena: all other processes have it by a descriptor, and so a mapping, that
        // cannot be written through. The host, which a worker trusts, says in a message where a block is. It has written
        // it before, and neither writes there nor takes the memory back until it has the answer, which is sent after the
        // last use of these bytes.
        Some(unsafe { self.0.bytes(offset, length) })
    }
}
