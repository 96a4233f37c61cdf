//! The time of a run, which stands still while the run is suspended.

use std::time::{Duration, SystemTime};

use brigade_base::Monotonic;
use brigade_sys::clock;

/// The time of a run.
#[derive(Debug)]
pub(crate) struct RunClock {
    /// The time of day at the start of the run.
    began: SystemTime,
    suspended: Duration,
}

impl RunClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "logs name the time of day; it is read once, and durations are taken from the monotonic clock"
    )]
    pub(crate) fn start() -> Self {
        Self { began: SystemTime::now(), suspended: Duration::ZERO }
    }

    /// Returns the time of day after this much of the run has passed.
    pub(crate) fn time_of_day(&self, elapsed: Duration) -> SystemTime {
        self.began + elapsed
    }

    /// Returns the time.
    pub(crate) fn now(&self) -> Monotonic {
        let suspended = u64::try_from(self.suspended.as_nanos()).unwrap_or(u64::MAX);
        Monotonic::from_nanos(clock::now().as_nanos().saturating_sub(suspended))
    }

    /// Returns the time of the system at which the run will have this time.
    pub(crate) fn in_system(&self, time: Monotonic) -> Monotonic {
        time.saturating_add(self.suspended)
    }

    /// Calls `pause`, and lets no time pass meanwhile.
    pub(crate) fn stand_still(&mut self, pause: impl FnOnce()) {
        let before = clock::now();
        pause();
        self.suspended += clock::now().saturating_since(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_takes_no_time() {
        let clock = RunClock { suspended: Duration::from_secs(9), ..RunClock::start() };
        let time = Monotonic::from_nanos(5);
        assert_eq!(clock.in_system(time).saturating_since(time), Duration::from_secs(9));
        let (before, now) = (clock::now(), clock.in_system(clock.now()));
        assert!(now >= before && now <= clock::now());
    }
}
