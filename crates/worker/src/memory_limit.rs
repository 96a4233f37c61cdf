//! Checks if this process exceeds its memory limit.

use std::io;
use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::memory::ResidentSize;

/// Minimum interval between two checks, each of which takes about ten microseconds.
const INTERVAL: Duration = Duration::from_millis(1);

/// A limit of the resident size, which is checked now and then.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    /// In bytes.
    limit: u64,
    /// `None` if there is no limit.
    size: Option<ResidentSize>,
    next_look: Monotonic,
}

impl MemoryLimit {
    /// Opens all that a limit needs; 0 means no limit. Call it before the initializer, which may
    /// close the file system.
    pub(crate) fn open(limit: u64) -> io::Result<Self> {
        let size = if limit == 0 { None } else { Some(ResidentSize::open()?) };
        Ok(Self { limit, size, next_look: clock::now() })
    }

    /// Returns an error if there is a limit and the size cannot be measured.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.size.as_ref().map_or(Ok(()), |size| size.bytes().map(drop))
    }

    /// Returns `true` if there is a limit and the resident size exceeds it. Called between tasks.
    pub(crate) fn is_exceeded(&mut self) -> bool {
        let Some(size) = &self.size else { return false };
        let now = clock::now();
        if now < self.next_look {
            return false;
        }
        self.next_look = now.saturating_add(INTERVAL);
        // A task may have closed the descriptor. A new process has another one.
        size.bytes().map_or_else(
            |error| {
                tracing::warn!(%error, "`max_worker_rss` cannot be checked: replacing this worker");
                true
            },
            |bytes| bytes > self.limit,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_below_the_resident_size_is_exceeded() {
        let is_exceeded = |limit| MemoryLimit::open(limit).expect("/proc").is_exceeded();
        assert!(is_exceeded(1));
        assert!(!is_exceeded(u64::MAX));
        assert!(!is_exceeded(0));
    }
}
