//! The identity of an arena of results.

use std::os::fd::RawFd;

/// An arena of results as another process can find and recognize it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArenaRef {
    /// The host's descriptor of the arena, which a worker opens in `/proc`. The host has it open as
    /// long as a buffer of the arena is in use. It is -1 in the worker that writes the arena.
    pub descriptor: RawFd,
    /// The number of the file, which no other arena has at the same time.
    pub inode: u64,
    /// Size of the arena in bytes.
    pub length: u64,
}
