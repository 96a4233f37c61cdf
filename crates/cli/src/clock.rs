//! The wall-clock time of the run's start. All later times are measured with the monotonic clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The wall-clock time at which a run started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTime(Duration);

impl StartTime {
    /// Reads the clock.
    #[expect(
        clippy::disallowed_methods,
        reason = "a log names the time of day; it is read once, and durations are taken from the monotonic clock"
    )]
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Returns the time in seconds since 1970 after this much of the run has passed.
    pub(crate) fn at(self, elapsed: Duration) -> f64 {
        (self.0 + elapsed).as_secs_f64()
    }
}
