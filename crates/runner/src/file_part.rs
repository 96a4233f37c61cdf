//! A part of a file as standard input.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// A part of a file, which a job gets through a pipe as its standard input, after a header.
///
/// Memory use does not depend on its length. If the file becomes shorter meanwhile or cannot be
/// read, the run fails.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FilePart {
    pub(crate) path: PathBuf,
    pub(crate) range: Range<u64>,
    pub(crate) header: Arc<[u8]>,
}

impl FilePart {
    /// Returns the bytes in this range of a file.
    pub fn new(path: impl Into<PathBuf>, range: Range<u64>) -> Self {
        Self { path: path.into(), range, header: Arc::default() }
    }

    /// Sets bytes that come before the part.
    #[must_use]
    pub fn header(mut self, header: impl Into<Arc<[u8]>>) -> Self {
        self.header = header.into();
        self
    }
}
