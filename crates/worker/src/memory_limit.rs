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
    /// Bytes above those before the first task; 0 for no limit.
    growth: u64,
    /// `None` if there is no limit.
    size: Option<ResidentSize>,
    next_look: Monotonic,
}

impl MemoryLimit {
    /// Opens all that a limit on the size or on its growth needs; 0 means no limit. Call it before
    /// the initializer, which may close the file system. What a process that was forked has from
    /// its server, such as the value of `preload`, does not count.
    pub(crate) fn open(limit: u64, growth: u64, is_forked: bool) -> io::Result<Self> {
        let size = if limit == 0 && growth == 0 { None } else { Some(ResidentSize::open()?) };
        let shared = if is_forked { size.as_ref().map(ResidentSize::bytes) } else { None };
        let shared = shared.transpose()?.unwrap_or(0);
        let limit = if limit == 0 { u64::MAX } else { limit.saturating_add(shared) };
        Ok(Self { limit, growth, size, next_look: clock::now() })
    }

    /// Returns no limit.
    pub(crate) fn none() -> Self {
        Self { limit: u64::MAX, growth: 0, size: None, next_look: clock::now() }
    }

    /// Limits the growth from now on. Returns an error if there is a limit and the size cannot be
    /// measured.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let Some(size) = &self.size else { return Ok(()) };
        let bytes = size.bytes()?;
        if self.growth > 0 {
            self.limit = self.limit.min(bytes.saturating_add(self.growth));
        }
        Ok(())
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
        let is_exceeded = |limit| MemoryLimit::open(limit, 0, false).expect("/proc").is_exceeded();
        assert!(is_exceeded(1));
        assert!(!is_exceeded(u64::MAX));
        assert!(!is_exceeded(0));
    }

    #[test]
    fn a_process_may_grow_up_to_a_limit() {
        let mut limit = MemoryLimit::open(0, 32 << 20, false).expect("/proc");
        limit.begin().expect("/proc");
        assert!(!limit.is_exceeded());
        let block = std::hint::black_box(vec![1_u8; 64 << 20]);
        limit.next_look = clock::now();
        assert!(limit.is_exceeded());
        drop(block);
    }

    #[test]
    fn what_a_forked_process_has_from_its_server_does_not_count() {
        let table = std::hint::black_box(vec![1_u8; 64 << 20]);
        let is_exceeded =
            |is_forked| MemoryLimit::open(32 << 20, 0, is_forked).expect("/proc").is_exceeded();
        assert!(is_exceeded(false) && !is_exceeded(true));
        drop(table);
    }
}
