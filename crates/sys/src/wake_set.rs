//! Wakes a thread from other processes, none of which can keep the others from waking it.
//!
//! Each process gets an event descriptor of its own, and the thread waits for all of them through
//! one `epoll`. The host never reads or writes these descriptors: it takes the edges. So whatever a
//! process does to its descriptor (read the counter, fill it, change its flags, close it) affects
//! nobody else. The host keeps each descriptor as long as the process may have woken it: pending
//! wake-ups are lost with the last descriptor.
//!
//! A process knows its descriptor by a number, and a task may close it and open a file of its own
//! with the same number. Nobody writes to that file: the descriptor carries a mark, which is
//! checked before each write.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use crate::clock::Monotonic;
use crate::lifeline::F_SETSIG;
use crate::syscall::checked;
use crate::wait::{Waker, until};

/// Wake-ups of one thread, each of which is kept until it is taken.
#[derive(Debug)]
pub struct WakeSet {
    epoll: OwnedFd,
    own: Waker,
}

/// Maximum number of wake-ups taken at once. Further ones only make the next wait return without
/// need.
const TAKEN: usize = 64;

/// The mark: the signal that the open file would send if it sent any. Nobody else asks for this
/// one. Emulators keep the highest ones for themselves.
const MARK: libc::c_int = 40;

/// From `asm-generic/fcntl.h`; the libc crate defines it only for some C libraries.
const F_GETSIG: libc::c_int = 11;

impl WakeSet {
    /// Creates a set in which only this process wakes.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new() -> io::Result<Self> {
        let set = Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, own: Waker::new()? };
        set.watch(&set.own)?;
        Ok(set)
    }

    /// Creates a descriptor for another process, which makes it a [`RemoteWaker`]. Keep the
    /// descriptor as long as that process may wake: pending wake-ups are lost with the last
    /// descriptor.
    ///
    /// # Errors
    /// If descriptors or watches run out.
    pub fn remote(&self) -> io::Result<OwnedFd> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // SAFETY: a command with a number; without `O_ASYNC` it changes nothing but the result of
        // `F_GETSIG`.
        checked(unsafe { libc::fcntl(descriptor.as_raw_fd(), F_SETSIG, MARK) })?;
        self.watch(&descriptor)?;
        Ok(descriptor)
    }

    fn watch(&self, descriptor: impl AsFd) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(0), flags)?)
    }

    /// Wakes the thread from this process.
    pub fn wake(&self) {
        self.own.wake();
    }

    /// Waits for a wake-up and takes all that are pending. Returns `false` if the deadline passes
    /// first; one that has passed already makes this return at once.
    ///
    /// # Errors
    /// The system's error; an interruption is not an error.
    pub fn wait(&self, deadline: Option<Monotonic>) -> io::Result<bool> {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; TAKEN];
        until(deadline, |timeout| {
            epoll::wait(&self.epoll, &mut events, timeout).map(|(taken, _)| !taken.is_empty())
        })
    }
}

/// Wakes the thread that waits for a [`WakeSet`] in another process.
#[derive(Debug)]
pub struct RemoteWaker(OwnedFd);

impl RemoteWaker {
    /// Wraps a descriptor that [`WakeSet::remote`] created.
    pub fn from_fd(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Wakes the thread.
    ///
    /// # Errors
    /// If other code has closed the descriptor, even if another file now has its number.
    pub fn try_wake(&self) -> io::Result<()> {
        // SAFETY: a command without an argument, on whatever file has the number now.
        if unsafe { libc::fcntl(self.0.as_raw_fd(), F_GETSIG, 0) } != MARK {
            return Err(rustix::io::Errno::BADF.into());
        }
        match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            // Full: it is readable, so the other side has been woken.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::now;

    /// Returns `true` if there was a wake-up since the last time.
    fn was_woken(set: &WakeSet) -> io::Result<bool> {
        set.wait(Some(Monotonic::ZERO))
    }

    #[test]
    fn a_wake_up_of_each_process_is_seen_once() -> io::Result<()> {
        let set = WakeSet::new()?;
        let kept = [set.remote()?, set.remote()?];
        let remotes = [
            RemoteWaker::from_fd(kept[0].try_clone()?),
            RemoteWaker::from_fd(kept[1].try_clone()?),
        ];
        for _ in 0..3 {
            assert!(!was_woken(&set)?);
            remotes[0].try_wake()?;
            assert!(was_woken(&set)?);
            assert!(!was_woken(&set)?);
            remotes.iter().try_for_each(RemoteWaker::try_wake)?;
            set.wake();
            assert!(set.wait(None)?);
        }
        Ok(())
    }

    #[test]
    fn a_wait_ends_with_its_deadline() -> io::Result<()> {
        let set = WakeSet::new()?;
        let soon = now().saturating_add(Duration::from_millis(1));
        assert!(!set.wait(Some(soon))?);
        assert!(now() >= soon, "the wait ended early");
        Ok(())
    }

    #[test]
    fn a_process_with_a_broken_descriptor_affects_no_other() -> io::Result<()> {
        let set = WakeSet::new()?;
        let (spoiled, other) = (set.remote()?, RemoteWaker::from_fd(set.remote()?));
        rustix::io::write(&spoiled, &(u64::MAX - 1).to_ne_bytes())?;
        rustix::fs::fcntl_setfl(&spoiled, rustix::fs::OFlags::empty())?;
        was_woken(&set)?;
        assert!(!was_woken(&set)?);
        other.try_wake()?;
        rustix::io::read(&spoiled, &mut [0; 8])?;
        assert!(was_woken(&set)?);
        Ok(())
    }

    #[test]
    fn a_wake_up_outlives_the_process_that_woke() -> io::Result<()> {
        let set = WakeSet::new()?;
        let kept = set.remote()?;
        let remote = RemoteWaker::from_fd(kept.try_clone()?);
        remote.try_wake()?;
        drop(remote);
        assert!(was_woken(&set)?);
        drop(kept);
        assert!(!was_woken(&set)?);
        Ok(())
    }

    #[test]
    fn another_file_with_the_number_is_not_written_to() -> io::Result<()> {
        let other = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let remote = RemoteWaker::from_fd(other.try_clone()?);
        let error = remote.try_wake().map_err(|error| error.raw_os_error());
        assert_eq!(error, Err(Some(libc::EBADF)));
        assert_eq!(rustix::io::read(&other, &mut [0; 8]), Err(rustix::io::Errno::AGAIN));
        Ok(())
    }
}
