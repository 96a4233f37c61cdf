//! Waits for descriptors, and wakes a thread that waits.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, retry_on_intr};

use crate::clock::{Monotonic, now};

/// Waits until at least one descriptor is readable or hung up, or the deadline has passed.
///
/// The system refuses more descriptors at once than `RLIMIT_NOFILE` allows, open or not; a
/// [`Poller`](crate::poller::Poller) has no such limit.
///
/// The result has one entry for each descriptor; all are `false` if the deadline has passed.
///
/// # Errors
/// The error of `ppoll`; an interruption is not an error.
pub fn wait_readable(
    descriptors: &[BorrowedFd<'_>],
    deadline: Option<Monotonic>,
) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    until(deadline, |timeout| poll(&mut polled, timeout))?;
    Ok(polled.iter().map(|polled| !polled.revents().is_empty()).collect())
}

/// Waits until there is room to write or no reader is left. Returns `false` if the deadline passes
/// first.
///
/// # Errors
/// Like [`wait_readable`].
pub fn wait_writable(descriptor: BorrowedFd<'_>, deadline: Monotonic) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
    until(Some(deadline), |timeout| poll(&mut polled, timeout))?;
    Ok(!polled[0].revents().is_empty())
}

/// Calls `wait` with the time that is left, until nothing interrupts it.
pub(crate) fn until<T>(
    deadline: Option<Monotonic>,
    mut wait: impl FnMut(Option<&Timespec>) -> Result<T, Errno>,
) -> io::Result<T> {
    Ok(retry_on_intr(|| wait(deadline.map(time_left).as_ref()))?)
}

/// Returns the time until the deadline for a system call.
fn time_left(deadline: Monotonic) -> Timespec {
    timespec(deadline.saturating_since(now()))
}

/// Returns a duration as system calls take it.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

/// Wakes a thread that waits for it among other descriptors. Several wake-ups in a row count as
/// one.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// Creates a waker without a pending wake-up.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the descriptor readable.
    pub fn wake(&self) {
        // The counter is full only after 2^64 - 2 pending wake-ups, and still readable then.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Takes all pending wake-ups.
    pub fn drain(&self) {
        // It is fine if no wake-up is pending.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

crate::as_fd!(Waker, 0);

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_wake_up_is_seen_once() -> io::Result<()> {
        let waker = Waker::new()?;
        waker.wake();
        waker.wake();
        assert_eq!(wait_readable(&[waker.as_fd()], None)?, [true]);
        waker.drain();
        let soon = now().saturating_add(Duration::from_millis(1));
        assert_eq!(wait_readable(&[waker.as_fd()], Some(soon))?, [false]);
        assert!(now() >= soon, "the wait ended early");
        Ok(())
    }
}
