//! Arenas of other workers, which this worker can only read.
//!
//! A worker has no descriptor of them. It opens the host's, under `/proc`, when a message names a
//! buffer in one: the host lends the buffer, so it has the descriptor open. That costs one mapping
//! for an arena and nothing for a buffer. The last few mappings are kept.

use std::io;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, fstat, open};
use rustix::mm::ProtFlags;

use super::lent::LentBlock;
use super::mapping::{self, Mapping, invalid};
use super::reference::ArenaRef;
use crate::sync::Mutex;

/// The arenas of other workers.
#[derive(Debug)]
pub struct ForeignArenas {
    host: u32,
    /// The most recently used ones, the last one at the end.
    recent: Mutex<Vec<(ArenaRef, Arc<Mapping>)>>,
}

/// Number of mappings that are kept, each of which costs address space and nothing else.
const RECENT: usize = 8;

impl ForeignArenas {
    /// Returns the arenas of the workers of a host.
    pub fn new(host: u32) -> Self {
        Self { host, recent: Mutex::default() }
    }

    /// Returns bytes of an arena that the host lends to this worker.
    ///
    /// # Errors
    /// If the host's descriptor cannot be opened (there is no `/proc`, or a process may not look
    /// into another one), is another file, or cannot be mapped; `InvalidData` if the bytes exceed
    /// the arena. The host has to send the bytes then.
    pub fn lend(&self, arena: ArenaRef, offset: usize, length: usize) -> io::Result<LentBlock> {
        let mapping = self.mapping(arena)?;
        LentBlock::new(&mapping, offset, length).ok_or_else(|| invalid("no block of the arena"))
    }

    fn mapping(&self, arena: ArenaRef) -> io::Result<Arc<Mapping>> {
        let mut recent = self.recent.lock();
        let known = recent.iter().position(|(known, _)| *known == arena);
        let used = match known {
            Some(index) => recent.remove(index),
            None => (arena, Arc::new(self.open(arena)?)),
        };
        let mapping = Arc::clone(&used.1);
        if recent.len() == RECENT {
            recent.remove(0);
        }
        recent.push(used);
        Ok(mapping)
    }

    fn open(&self, arena: ArenaRef) -> io::Result<Mapping> {
        let path = format!("/proc/{}/fd/{}", self.host, arena.descriptor);
        // Another file could be a pipe, on which opening waits.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let descriptor = open(path, flags, Mode::empty())?;
        if fstat(&descriptor)?.st_ino != arena.inode {
            return Err(invalid("another file than the arena"));
        }
        let length = usize::try_from(arena.length).map_err(|_| invalid("the arena is too long"))?;
        mapping::open(&descriptor, length, ProtFlags::READ)
    }
}
