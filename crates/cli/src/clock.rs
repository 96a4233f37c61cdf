//! What the clock on the wall showed when the run started; everything later is counted on the monotonic clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// When a run started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTime(Duration);

impl StartTime {
    /// Now.
    #[expect(
        clippy::disallowed_methods,
        reason = "a log names the time of day; it is read once, and durations are taken from the monotonic clock"
    )]
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// Seconds since 1970 when this much of the run had passed.
    pub(crate) fn at(self, elapsed: Duration) -> f64 {
        (self.0 + elapsed).as_secs_f64()
    }
}
