//! Waits for many descriptors, most of which stay the same from one wait to the next.
//!
//! Unlike `poll` it works even if `RLIMIT_NOFILE` was lowered below the number of the watched
//! descriptors.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::clock::Monotonic;
use crate::wait::until;

/// Reports which of its descriptors are readable or hung up. Any thread may add and remove some.
#[derive(Debug)]
pub struct Poller {
    descriptor: OwnedFd,
    /// Number of watched descriptors, all of which may be ready at once.
    watched: AtomicUsize,
}

/// The conditions for which a descriptor is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read.
    Readable,
    /// There is room to write.
    Writable,
    /// Either.
    Both,
}

impl Poller {
    /// Creates a poller without descriptors.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new() -> io::Result<Self> {
        let descriptor = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { descriptor, watched: AtomicUsize::new(0) })
    }

    /// Watches a descriptor: waits report `token` while it is readable or hung up. Remove it before
    /// you close it.
    ///
    /// # Errors
    /// If memory or the limit on watched descriptors is used up.
    pub fn add(&self, descriptor: impl AsFd, token: u64) -> io::Result<()> {
        // Counted before another thread can see it, and remove it.
        self.watched.fetch_add(1, Ordering::Relaxed);
        epoll::add(&self.descriptor, descriptor, EventData::new_u64(token), EventFlags::IN)
            .inspect_err(|_| {
                self.watched.fetch_sub(1, Ordering::Relaxed);
            })?;
        Ok(())
    }

    /// Changes the conditions for which a watched descriptor is reported. It is reported in any
    /// case when it is hung up.
    ///
    /// # Errors
    /// If the descriptor is not watched.
    pub fn set_interest(
        &self,
        descriptor: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let flags = match interest {
            Interest::Readable => EventFlags::IN,
            Interest::Writable => EventFlags::OUT,
            Interest::Both => EventFlags::IN | EventFlags::OUT,
        };
        Ok(epoll::modify(&self.descriptor, descriptor, EventData::new_u64(token), flags)?)
    }

    /// Stops watching a descriptor.
    ///
    /// Closing it is not enough: if a fork of this process has a copy, it stays watched, and a dead
    /// process or a closed pipe would wake this thread again and again.
    pub fn remove(&self, descriptor: impl AsFd) {
        // An error means that it is not watched.
        if epoll::delete(&self.descriptor, descriptor).is_ok() {
            self.watched.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Replaces the content of `ready` with the tokens of all ready descriptors. Waits until there
    /// is one, if `wait` is `true`.
    ///
    /// # Errors
    /// The system's error; an interruption is not an error.
    pub fn ready(&self, wait: bool, ready: &mut Vec<u64>) -> io::Result<()> {
        self.ready_until((!wait).then_some(Monotonic::from_nanos(0)), ready)
    }

    /// Like [`ready`](Self::ready), but waits at most until the deadline.
    ///
    /// # Errors
    /// The system's error; an interruption is not an error.
    pub fn ready_until(&self, deadline: Option<Monotonic>, ready: &mut Vec<u64>) -> io::Result<()> {
        ready.clear();
        // Not kept between waits, because it cannot move between threads.
        let mut events: Vec<Event> =
            Vec::with_capacity(self.watched.load(Ordering::Relaxed).max(1));
        until(deadline, |timeout| {
            epoll::wait(&self.descriptor, spare_capacity(&mut events), timeout)
        })?;
        ready.extend(events.iter().map(|event| event.data.u64()));
        Ok(())
    }

    /// Waits until a descriptor is ready; returns `false` if the deadline passes first. Allocates
    /// nothing.
    ///
    /// # Errors
    /// The system's error; an interruption is not an error.
    pub fn wait(&self, deadline: Option<Monotonic>) -> io::Result<bool> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; 1];
        until(deadline, |timeout| {
            epoll::wait(&self.descriptor, &mut events, timeout).map(|(ready, _)| !ready.is_empty())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;
    use crate::wait::Waker;

    #[test]
    fn a_wait_ends_with_its_deadline_or_a_ready_descriptor() -> io::Result<()> {
        let (poller, waker) = (Poller::new()?, Waker::new()?);
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
    fn the_interest_decides_what_is_reported() -> io::Result<()> {
        let (near, _far) = std::os::unix::net::UnixStream::pair()?;
        let poller = Poller::new()?;
        poller.add(&near, 1)?;
        let mut ready = Vec::new();
        for (interest, expected) in
            [(Interest::Writable, &[1][..]), (Interest::Readable, &[]), (Interest::Both, &[1])]
        {
            poller.set_interest(&near, 1, interest)?;
            poller.ready(false, &mut ready)?;
            assert_eq!(ready, expected, "{interest:?}");
        }
        Ok(())
    }

    #[test]
    fn all_ready_descriptors_are_reported_until_they_are_handled() -> io::Result<()> {
        let poller = Poller::new()?;
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
