//! A point on the monotonic clock.

use std::ops::{Add, AddAssign};
use std::time::Duration;

/// A point on `CLOCK_MONOTONIC`, in nanoseconds since the clock's zero.
///
/// Two processes of one machine that read the clock at the same moment get the same value.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
)]
pub struct Monotonic(u64);

impl Monotonic {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);

    /// Creates a point from nanoseconds since the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since the clock's zero.
    pub const fn since_zero(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the time from `earlier` to this point, or zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the point `duration` later, or the last one if that is out of range.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(nanos(duration)))
    }

    /// Returns the point `duration` later, or `None` if that is out of range.
    pub fn checked_add(self, duration: Duration) -> Option<Self> {
        let nanos = u64::try_from(duration.as_nanos()).ok()?;
        self.0.checked_add(nanos).map(Self)
    }
}

/// Saturates, as [`saturating_add`](Monotonic::saturating_add) does.
impl Add<Duration> for Monotonic {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        self.saturating_add(duration)
    }
}

impl AddAssign<Duration> for Monotonic {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn differences_and_sums_stop_at_the_ends_of_the_clock() {
        let (zero, last) = (Monotonic::from_nanos(0), Monotonic::from_nanos(u64::MAX));
        assert_eq!(zero.saturating_since(last), Duration::ZERO);
        assert_eq!(last.saturating_add(SECOND), last);
        assert_eq!(last + SECOND, last);
        assert_eq!(last.checked_add(SECOND), None);
        assert_eq!(zero.checked_add(Duration::MAX), None);
        assert_eq!(zero.saturating_add(Duration::MAX), last);
    }

    #[test]
    fn a_point_is_the_time_since_zero() {
        let point = Monotonic::ZERO.saturating_add(SECOND);
        assert_eq!(point.since_zero(), SECOND);
        assert_eq!(point.as_nanos(), 1_000_000_000);
    }
}
