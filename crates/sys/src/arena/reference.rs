//! The identity of an arena of results.

/// An arena of results as another process can recognize it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ArenaRef {
    /// The number of the file, which no other arena has at the same time.
    pub inode: u64,
    /// Size of the arena in bytes.
    pub length: u64,
}
