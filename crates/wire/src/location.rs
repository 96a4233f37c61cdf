//! The location of bytes in an arena.

/// Location of encoded bytes in an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Offset from the beginning of the arena.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Location {
    /// Returns a location in an arena that this process has mapped.
    pub fn of(offset: usize, length: usize) -> Self {
        Self { offset: offset as u64, length: length as u64 }
    }

    /// Returns the offset and the length; `None` if no arena of this process can have them.
    pub fn in_memory(self) -> Option<(usize, usize)> {
        Some((self.offset.try_into().ok()?, self.length.try_into().ok()?))
    }
}
