//! Messages of a worker that name its own blocks.

use std::sync::Arc;

use crate::shared::buf::SharedBuf;
use crate::shared::memory::Memory;

/// The right to name a buffer in one message, which the host releases later. Dropping it takes the
/// naming back.
#[derive(Debug)]
#[must_use = "a naming that is dropped is taken back"]
pub struct Export(Option<Arc<Memory>>);

impl SharedBuf {
    /// Counts a message that names this buffer. Call it on a worker before the message is sent,
    /// once for each message, and call [`sent`](Export::sent) after that.
    ///
    /// Only buffers that this worker has allocated are counted; for others it does nothing.
    pub fn export(&self) -> Export {
        let own = self.memory().own();
        if let Some(block) = own {
            block.export();
        }
        Export(own.map(|_| Arc::clone(self.memory())))
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
