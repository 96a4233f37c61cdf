//! The destination of a job's output.

use std::path::PathBuf;

/// The destination of a job's output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Keeps the last bytes of each stream, at most this many.
    Tail(usize),
    /// Keeps everything: up to [`MAX_IN_MEMORY`](crate::MAX_IN_MEMORY) bytes of each stream in
    /// memory, more in an unnamed file.
    Whole,
    /// Uses the standard output and error of this process.
    Inherit,
    /// Discards it.
    Null,
    /// Lets the job write to files itself. Their directories must exist; existing files are
    /// truncated.
    Files {
        /// Path for standard output.
        stdout: PathBuf,
        /// Path for standard error.
        stderr: PathBuf,
    },
}

/// Number of bytes of each stream that are kept by default.
pub const DEFAULT_TAIL: usize = 64 * 1024;

impl Default for Output {
    fn default() -> Self {
        Self::Tail(DEFAULT_TAIL)
    }
}
