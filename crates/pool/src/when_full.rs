//! The reaction of a submission to a full queue.

use std::time::{Duration, Instant};

/// Reaction of a submission to a full queue.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WhenFull {
    /// Waits for room.
    Wait,
    /// Fails.
    Fail,
    /// Waits for room until this time, then fails.
    WaitUntil(Instant),
    /// Exceeds the limit; the submitter has a limit of its own.
    Exceed,
}

impl WhenFull {
    /// Waits for `timeout`. A timeout beyond the range of the clock counts as no timeout.
    pub(crate) fn within(timeout: Duration) -> Self {
        Instant::now().checked_add(timeout).map_or(Self::Wait, Self::WaitUntil)
    }
}
