//! The place of a buffer's bytes.

use brigade_sys::arena::ArenaRef;

/// The place of a whole buffer, as a message names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Memory that no message can name: the bytes have to be a part of it.
    Heap,
    /// The pool's arena of arguments, which the host writes.
    Arguments {
        /// Offset of the first byte in the arena.
        offset: usize,
        /// Length in bytes.
        length: usize,
    },
    /// A worker's arena of results.
    Results {
        /// The arena.
        arena: ArenaRef,
        /// Offset of the first byte in the arena.
        offset: usize,
        /// Length in bytes.
        length: usize,
    },
}
