//! `rustix::time`: the clock works.

use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

flags! {
    TimerfdFlags: CLOEXEC NONBLOCK;
    TimerfdTimerFlags: ABSTIME;
}

records! {
    Timespec { tv_sec: i64, tv_nsec: i64 }
    Itimerspec { it_interval: Timespec, it_value: Timespec }
}

#[derive(Debug, Clone, Copy)]
pub enum ClockId {
    Monotonic,
    MonotonicCoarse,
}

#[derive(Debug, Clone, Copy)]
pub enum TimerfdClockId {
    Monotonic,
}

refused! {
    timerfd_create(TimerfdClockId, TimerfdFlags) -> OwnedFd;
    timerfd_settime<F>(F, TimerfdTimerFlags, &Itimerspec) -> Itimerspec;
}

/// Returns the time since the first call, one second later: zero is before everything.
pub fn clock_gettime(_: ClockId) -> Timespec {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let time = FIRST.get_or_init(Instant::now).elapsed() + Duration::from_secs(1);
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

impl TryFrom<Duration> for Timespec {
    type Error = std::num::TryFromIntError;

    fn try_from(time: Duration) -> Result<Self, Self::Error> {
        Ok(Self { tv_sec: time.as_secs().try_into()?, tv_nsec: time.subsec_nanos().into() })
    }
}

impl From<Timespec> for Duration {
    fn from(time: Timespec) -> Self {
        let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
        Self::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
    }
}
