//! Checks if this process exceeds its memory limit.

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::memory;

/// Minimum interval between two checks, each of which takes about ten microseconds.
const INTERVAL: Duration = Duration::from_millis(1);

/// A limit of the resident size, which is checked now and then.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    /// In bytes; 0 means no limit.
    limit: u64,
    next_look: Monotonic,
}

impl MemoryLimit {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, next_look: clock::now() }
    }

    /// Returns `true` if there is a limit and the resident size exceeds it. Called between tasks.
    pub(crate) fn is_exceeded(&mut self) -> bool {
        if self.limit == 0 {
            return false;
        }
        let now = clock::now();
        if now < self.next_look {
            return false;
        }
        self.next_look = now.saturating_add(INTERVAL);
        // A task may have unmounted /proc. Then there is nothing to compare.
        memory::resident().is_ok_and(|bytes| bytes > self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_limit_below_the_resident_size_is_exceeded() {
        assert!(MemoryLimit::new(1).is_exceeded());
        assert!(!MemoryLimit::new(u64::MAX).is_exceeded());
        assert!(!MemoryLimit::new(0).is_exceeded());
    }
}
