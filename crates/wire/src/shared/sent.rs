//! The places by which the receiver of a message finds buffers.
//!
//! A process may be a worker of one pool and the host of another, whose workers do not reach the
//! memory of the first.

use std::sync::Arc;

use brigade_sys::arena::ArgumentArena;

use crate::shared::buf::SharedBuf;
use crate::shared::memory::Backing;
use crate::shared::place::Place;

impl SharedBuf {
    /// Returns the place of the whole buffer for workers of the host that has this arena. It is
    /// [`Place::Heap`] if they cannot read the memory.
    pub fn place_for_worker(&self, arguments: &Arc<ArgumentArena>) -> Place {
        match self.memory().backing() {
            Backing::Arguments(block) if block.is_in(arguments) => self.place(),
            Backing::Results(_) => self.place(),
            _ => Place::Heap,
        }
    }

    /// Returns the place of the whole buffer for the host of this worker. It is [`Place::Heap`] if
    /// the host cannot read the memory.
    pub fn place_for_host(&self) -> Place {
        match self.memory().backing() {
            Backing::Own(_) | Backing::Lent { .. } => self.place(),
            _ => Place::Heap,
        }
    }

    /// Returns `true` if the memory is a block that this worker has allocated.
    pub fn is_own(&self) -> bool {
        self.memory().own().is_some()
    }
}
