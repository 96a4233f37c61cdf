//! Waiting for many descriptors, which stay the same from one wait to the next.
//!
//! Unlike `poll` it works also when `RLIMIT_NOFILE` was lowered below the number of the descriptors that are watched.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::clock::Monotonic;
use crate::wait::time_left;

/// Tells which of its descriptors are readable or hung up.
#[derive(Debug)]
pub struct Poller {
    descriptor: OwnedFd,
    /// So many descriptors are watched, and so many can be ready at once.
    watched: usize,
}

impl Poller {
    /// Without a descriptor.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub fn new() -> io::Result<Self> {
        let descriptor = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { descriptor, watched: 0 })
    }

    /// Has waits tell `token` while the descriptor is readable or hung up. Take it away before you close it.
    ///
    /// # Errors
    /// When memory or the limit on watched descriptors is used up.
    pub fn add(&mut self, descriptor: impl AsFd, token: u64) -> io::Result<()> {
        epoll::add(&self.descriptor, descriptor, EventData::new_u64(token), EventFlags::IN)?;
        self.watched += 1;
        Ok(())
    }

    /// Takes a descriptor away that was added.
    pub fn remove(&mut self, descriptor: impl AsFd) {
        // An error says that it is not there.
        if epoll::delete(&self.descriptor, descriptor).is_ok() {
            self.watched -= 1;
        }
    }

    /// Puts the tokens of all ready descriptors into `ready`, whatever was in it. Waits until there is one, if `wait` says so.
    ///
    /// # Errors
    /// What the system says; an interruption is not an error.
    pub fn ready(&self, wait: bool, ready: &mut Vec<u64>) -> io::Result<()> {
        self.collect((!wait).then_some(Monotonic::from_nanos(0)), ready)
    }

    /// As [`ready`](Self::ready), and waits until the deadline at most.
    ///
    /// # Errors
    /// What the system says; an interruption is not an error.
    pub fn ready_until(&self, deadline: Option<Monotonic>, ready: &mut Vec<u64>) -> io::Result<()> {
        self.collect(deadline, ready)
    }

    fn collect(&self, deadline: Option<Monotonic>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        // Not kept between waits, as it cannot go from one thread to another.
        let mut events: Vec<Event> = Vec::with_capacity(self.watched.max(1));
        until(deadline, |timeout| {
            epoll::wait(&self.descriptor, spare_capacity(&mut events), timeout)
        })?;
        ready.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }

    /// Waits until a descriptor is ready, or the deadline has come: then it answers false. Allocates nothing.
    ///
    /// # Errors
    /// What the system says; an interruption is not an error.
    pub fn wait(&self, deadline: Option<Monotonic>) -> io::Result<bool> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; 1];
        until(deadline, |timeout| {
            epoll::wait(&self.descriptor, &mut events, timeout).map(|(ready, _)| !ready.is_empty())
        })
    }
}

fn until<T>(
    deadline: Option<Monotonic>,
    mut wait: impl FnMut(Option<&Timespec>) -> Result<T, Errno>,
) -> io::Result<T> {
    loop {
        match wait(deadline.map(time_left).as_ref()) {
            Ok(ready) => return Ok(ready),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;
    use crate::wait::Waker;

    #[test]
    fn a_wait_ends_with_its_deadline_or_when_there_is_something() -> io::Result<()> {
        let (mut poller, waker) = (Poller::new()?, Waker::new()?);
        poller.add(&waker, 3)?;
        let soon = now().saturating_add(Duration::from_millis(1));
        assert!(!poller.wait(Some(soon))?);
        assert!(now() >= soon, "the wait ended early");
        waker.wake();
        assert!(poller.wait(None)?);
        let mut ready = Vec::new();
        poller.ready_until(Some(now().saturating_add(Duration::from_secs(60))), &mut ready)?;
        assert_eq!(ready, [3]);
        waker.drain();
        poller.ready_until(Some(now().saturating_add(Duration::from_millis(1))), &mut ready)?;
        assert!(ready.is_empty());
        Ok(())
    }

    #[test]
    fn all_that_is_ready_is_told_at_once_and_again_until_it_is_dealt_with() -> io::Result<()> {
        let mut poller = Poller::new()?;
        let wakers = (0..100).map(|_| Waker::new()).collect::<io::Result<Vec<_>>>()?;
        for (token, waker) in (0..).zip(&wakers) {
            poller.add(waker, token)?;
        }
        let mut ready = vec![7];
        poller.ready(false, &mut ready)?;
        assert!(ready.is_empty());
        wakers.iter().for_each(Waker::wake);
        for _ in 0..2 {
            poller.ready(true, &mut ready)?;
            ready.sort_unstable();
            assert!(ready.iter().copied().eq(0..100));
        }
        wakers[..99].iter().for_each(Waker::drain);
        poller.ready(true, &mut ready)?;
        assert_eq!(ready, [99]);
        poller.remove(&wakers[99]);
        poller.ready(false, &mut ready)?;
        assert!(ready.is_empty());
        Ok(())
    }
}
