//! Waiting for descriptors, and waking a thread that does.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::clock::{Monotonic, now};

/// Waits until at least one descriptor is readable or hung up, or the deadline has come.
///
/// The system refuses more descriptors at once than `RLIMIT_NOFILE` allows, open or not: a [`Poller`](crate::poller::Poller)
/// has no such rule.
///
/// The answer has one entry for each descriptor; none is true when the time is over.
///
/// # Errors
/// What `ppoll` says; an interruption is not an error.
pub fn wait_readable(
    descriptors: &[BorrowedFd<'_>],
    deadline: Option<Monotonic>,
) -> io::Result<Vec<bool>> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN))
        .collect();
    wait_for(&mut polled, deadline)?;
    Ok(polled.iter().map(|polled| !polled.revents().is_empty()).collect())
}

/// Waits until there is room to write, or nobody left to read, or the deadline has come: then it answers false.
///
/// # Errors
/// As [`wait_readable`].
pub fn wait_writable(descriptor: BorrowedFd<'_>, deadline: Monotonic) -> io::Result<bool> {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, PollFlags::OUT)];
    wait_for(&mut polled, Some(deadline))?;
    Ok(!polled[0].revents().is_empty())
}

fn wait_for(polled: &mut [PollFd<'_>], deadline: Option<Monotonic>) -> io::Result<()> {
    loop {
        let timeout = deadline.map(time_left);
        match poll(polled, timeout.as_ref()) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// For the system: how long it is until then.
pub(crate) fn time_left(deadline: Monotonic) -> Timespec {
    let left = deadline.saturating_since(now());
    Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(left.subsec_nanos()),
    }
}

/// Wakes a thread that waits for it among other descriptors. Wake-ups that nobody took yet are one.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// A waker that is not awake.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes the descriptor readable.
    pub fn wake(&self) {
        // The counter is full only after 2^64 - 2 wake-ups that nobody took: readable all the same.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Takes all wake-ups so far.
    pub fn drain(&self) {
        // Nothing there is fine.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
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
