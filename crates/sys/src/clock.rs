//! The monotonic clock, as a number that all processes of the machine share.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// A point on `CLOCK_MONOTONIC`. Two processes that read it at the same moment get the same value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(u64);

/// The current time.
#[inline]
pub fn now() -> Monotonic {
    from_timespec(clock_gettime(ClockId::Monotonic))
}

#[inline]
fn from_timespec(time: Timespec) -> Monotonic {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Monotonic(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time at the last tick of the system's timer, at most 10 ms ago: for a fifth of the price of [`now`].
#[inline]
pub fn last_tick() -> Monotonic {
    from_timespec(clock_gettime(ClockId::MonotonicCoarse))
}

impl Monotonic {
    /// From nanoseconds since the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// From the time since the clock's zero.
    pub fn from_zero(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time since the clock's zero.
    pub const fn since_zero(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The time from `earlier` to this; zero if it is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// This time and `duration` more; the last representable time when that is too far.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
        assert_eq!(
            first.saturating_since(first.saturating_add(Duration::from_secs(1))),
            Duration::ZERO
        );
    }
}
