//! Turns one deadline into a descriptor, so that a thread can wait for it together with others.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::Monotonic;
use crate::wait::timespec;

/// A timer that becomes readable at its deadline: never earlier, and without the slack of a wait's
/// timeout.
#[derive(Debug)]
pub struct DeadlineTimer(OwnedFd);

impl DeadlineTimer {
    /// Creates a timer without a deadline.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Replaces the deadline and makes the descriptor unreadable until then; `None` means forever.
    ///
    /// # Errors
    /// The system's error.
    pub fn set(&self, deadline: Option<Monotonic>) -> io::Result<()> {
        let value = deadline.map_or(ZERO, |deadline| {
            // Zero would disarm it; a deadline at the clock's zero has passed in any case.
            timespec(deadline.since_zero().max(Duration::from_nanos(1)))
        });
        let setting = Itimerspec { it_interval: ZERO, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

const ZERO: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

crate::as_fd!(DeadlineTimer, 0);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;
    use crate::clock::now;
    use crate::wait::wait_readable;

    #[test]
    fn a_timer_is_readable_at_its_deadline_and_not_before() -> io::Result<()> {
        let timer = DeadlineTimer::new()?;
        let deadline = now().saturating_add(Duration::from_millis(2));
        timer.set(Some(deadline))?;
        let bound = now().saturating_add(Duration::from_secs(10));
        assert_eq!(wait_readable(&[timer.as_fd()], Some(bound))?, [true]);
        assert!(now() >= deadline);
        timer.set(None)?;
        assert_eq!(wait_readable(&[timer.as_fd()], Some(now()))?, [false]);
        Ok(())
    }

    #[test]
    fn a_past_deadline_has_come_and_an_infinite_one_has_not() -> io::Result<()> {
        let timer = DeadlineTimer::new()?;
        timer.set(Some(Monotonic::from_nanos(0)))?;
        let bound = now().saturating_add(Duration::from_secs(10));
        assert_eq!(wait_readable(&[timer.as_fd()], Some(bound))?, [true]);
        timer.set(Some(Monotonic::from_nanos(u64::MAX)))?;
        assert_eq!(wait_readable(&[timer.as_fd()], Some(now()))?, [false]);
        Ok(())
    }
}
