//! The segments by which the receiver of a message finds buffers.
//!
//! A process may be a worker of one pool and the host of another, whose workers do not reach the
//! memory of the first.

use std::sync::Arc;

use brigade_sys::arena::ArgumentArena;

use crate::segments::Segment;
use crate::shared::buf::SharedBuf;
use crate::shared::memory::Backing;

impl SharedBuf {
    /// Returns the [name](Self::name) of the whole buffer for workers of the host that has this
    /// arena; `None` if they cannot read the memory.
    pub fn name_for_worker(&self, arguments: &Arc<ArgumentArena>) -> Option<Segment<'static>> {
        match self.memory().backing() {
            Backing::Arguments(block) if block.is_in(arguments) => self.name(),
            Backing::Results(_) => self.name(),
            _ => None,
        }
    }

    /// Returns the [name](Self::name) of the whole buffer for the host of this worker; `None` if
    /// the host cannot read the memory.
    pub fn name_for_host(&self) -> Option<Segment<'static>> {
        match self.memory().backing() {
            Backing::Own(_) | Backing::Lent { .. } => self.name(),
            _ => None,
        }
    }
}
