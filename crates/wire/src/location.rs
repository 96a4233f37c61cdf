//! The location of bytes in an arena.

/// Location of encoded bytes in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Offset from the beginning of the arena.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}
