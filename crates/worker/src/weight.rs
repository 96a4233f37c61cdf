//! Whether this process has grown too large.

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_sys::memory;

/// To look takes about ten microseconds, so it is done only so often.
const INTERVAL: Duration = Duration::from_millis(1);

/// Looks at the memory that is resident, now and then.
#[derive(Debug)]
pub(crate) struct Weight {
    /// Bytes; 0 for no limit.
    limit: u64,
    next_look: Monotonic,
}

impl Weight {
    pub(crate) fn limited_to(limit: u64) -> Self {
        Self { limit, next_look: clock::now() }
    }

    /// Whether there is a limit, and more than that is resident; asked between tasks.
    pub(crate) fn is_too_much(&mut self) -> bool {
        if self.limit == 0 {
            return false;
        }
        let now = clock::now();
        if now < self.next_look {
            return false;
        }
        self.next_look = now.saturating_add(INTERVAL);
        // A task may have taken /proc away; then there is nothing to compare.
        memory::resident().is_ok_and(|bytes| bytes > self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_is_larger_than_a_byte_and_smaller_than_the_machine() {
        assert!(Weight::limited_to(1).is_too_much());
        assert!(!Weight::limited_to(u64::MAX).is_too_much());
        assert!(!Weight::limited_to(0).is_too_much());
    }
}
