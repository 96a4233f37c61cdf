//! The names by which the receiver of a message finds buffers. A worker counts the messages that
//! name its own blocks.
//!
//! A process may be a worker of one pool and the host of another, whose workers do not reach the
//! memory of the first.

use std::sync::Arc;

use brigade_sys::arena::ArgumentArena;

use crate::segments::Segment;
use crate::shared::buf::SharedBuf;
use crate::shared::memory::{Backing, Memory};

/// The right to name a buffer in one message, which the host releases later. Dropping it takes the
/// naming back.
#[derive(Debug)]
#[must_use = "a naming that is dropped is taken back"]
pub struct Export(Option<Arc<Memory>>);

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

    /// Counts a message that names this buffer. Call it on a worker before the message is sent,
    /// once for each message, and call [`sent`](Export::sent) after that.
    ///
    /// Only buffers that this worker has allocated are counted; for others it does nothing.
    pub fn export(&self) -> Export {
        Export(self.memory().own().map(|block| {
            block.export();
            Arc::clone(self.memory())
        }))
    }
}

impl Export {
    /// Keeps the naming: the message was sent.
    pub fn sent(mut self) {
        self.0 = None;
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        if let Some(block) = self.0.as_deref().and_then(Memory::own) {
            block.undo_export();
        }
    }
}
