//! Bytes that the host lends to a worker.

use std::sync::Arc;

use super::mapping::ArenaMapping;

/// Bytes that the host lends to this worker, in whatever arena.
///
/// The host keeps the block as long as the task that it was sent to runs, and longer if the worker
/// reports that it holds the block. It is up to the worker's end of the protocol to keep that
/// promise: a buffer that is not reported must not be used after its task.
#[derive(Debug)]
pub struct LentBlock {
    mapping: Arc<ArenaMapping>,
    offset: usize,
    length: usize,
}

impl LentBlock {
    /// Returns `None` if the bytes do not lie in the arena.
    pub(super) fn new(mapping: &Arc<ArenaMapping>, offset: usize, length: usize) -> Option<Self> {
        let mapping = mapping.contains(offset, length).then(|| Arc::clone(mapping))?;
        Some(Self { mapping, offset, length })
    }

    /// Returns the offset of the bytes in their arena.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the host, which a worker trusts, has sent the location in a message. It neither
        // writes there nor frees the block while this worker uses it, and it has received a block
        // of results only after its writer had ended writing.
        unsafe { self.mapping.bytes(self.offset, self.length) }
    }
}
