//! Reads the monotonic clock, which all processes of the machine share.
//!
//! Through the C library: rustix asks the kernel where the vDSO is, and reads it there even where
//! valgrind has taken it away.

use std::time::Duration;

pub use brigade_base::Monotonic;

/// Returns the current time.
#[inline]
pub fn now() -> Monotonic {
    from_timespec(read(libc::CLOCK_MONOTONIC))
}

#[inline]
#[cfg(all(target_os = "linux", not(brigade_elsewhere)))]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a structure that is ours. Every kernel that runs this has these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}

#[cfg(any(not(target_os = "linux"), brigade_elsewhere))]
fn read(_: libc::clockid_t) -> libc::timespec {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    libc::timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_nsec }
}

#[inline]
fn from_timespec(time: libc::timespec) -> Monotonic {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Monotonic::from_nanos(seconds * 1_000_000_000 + nanos)
}

/// Returns the time of the system timer's last tick, at most 10 ms ago: for a fifth of the price of
/// [`now`].
#[inline]
pub fn last_tick() -> Monotonic {
    from_timespec(read(libc::CLOCK_MONOTONIC_COARSE))
}

/// Returns the processor time that all threads of a process have taken; `None` if there is no such
/// process.
pub fn cpu_time_of(pid: u32) -> Option<Duration> {
    // The clock of a process has its id, inverted, above three bits with the kind of time:
    // include/linux/posix-timers.h of Linux, clock_getcpuclockid(3).
    const SCHED: i32 = 2;
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a structure that is ours.
    let result = unsafe { libc::clock_gettime(!pid << 3 | SCHED, &raw mut time) };
    let (seconds, nanos) = (u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?);
    (result == 0).then(|| Duration::new(seconds, nanos))
}

/// Notices ticks of the system timer, which come every 1 to 10 ms.
#[derive(Debug)]
pub struct Ticks(libc::timespec);

impl Ticks {
    /// Notices ticks from now on.
    #[inline]
    #[expect(clippy::new_without_default, reason = "it depends on the time")]
    pub fn new() -> Self {
        Self(read(libc::CLOCK_MONOTONIC_COARSE))
    }

    /// Returns `true` if there was a tick since the last call.
    #[inline]
    pub fn has_ticked(&mut self) -> bool {
        let now = read(libc::CLOCK_MONOTONIC_COARSE);
        let has_ticked = now.tv_nsec != self.0.tv_nsec || now.tv_sec != self.0.tv_sec;
        if has_ticked {
            self.0 = now;
        }
        has_ticked
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ticks, cpu_time_of, last_tick, now};

    #[test]
    fn time_does_not_go_back() {
        let first = now();
        assert!(now() >= first);
    }

    #[test]
    fn the_processor_time_of_a_process_grows_while_it_computes() {
        let before = cpu_time_of(std::process::id()).expect("this process");
        let end = now().saturating_add(Duration::from_secs(10));
        while cpu_time_of(std::process::id()).expect("this process") == before {
            assert!(now() < end, "no progress");
        }
        assert_eq!(cpu_time_of(0), None);
        assert_eq!(cpu_time_of(u32::MAX), None);
    }

    #[test]
    fn a_tick_is_noticed_within_a_second() {
        let (before, mut ticks) = (last_tick(), Ticks::new());
        let end = now().saturating_add(Duration::from_secs(1));
        while !ticks.has_ticked() {
            assert!(now() < end, "no tick");
        }
        assert!(last_tick() > before, "noticed without a tick");
    }
}
