//! Waking a thread from other processes, none of which can keep it from being woken by the others.
//!
//! Each process gets an event descriptor of its own, and the thread waits for all of them through one `epoll`. The host
//! never reads or writes these descriptors: it takes the edges. So nothing that a process does to its descriptor (read the
//! counter away, fill it, change its flags, close it) is seen by anybody else. The host holds each as long as the process may
//! have woken it: with the last descriptor the wake-ups go that nobody has taken.
//!
//! A process knows its descriptor by a number, and a task may close it and open a file of its own by the same number.
//! Nobody writes to that one: the descriptor carries a mark, and it is looked at before each write.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::Timespec;

use crate::wait::Waker;

/// Readable from a wake-up until [`drain`](Self::drain).
#[derive(Debug)]
pub struct WakeSet {
    epoll: OwnedFd,
    own: Waker,
}

/// So many wake-ups are taken at once. More only make the next wait return for nothing.
const TAKEN: usize = 64;

/// The mark: the signal that the open file would send if it sent any. The highest there is, which nobody else asks for.
const MARK: libc::c_int = 64;

/// `fcntl` commands that libc does not name for this target.
const F_SETSIG: libc::c_int = 10;
const F_GETSIG: libc::c_int = 11;

impl WakeSet {
    /// A set in which only this process wakes.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new() -> io::Result<Self> {
        let set = Self { epoll: epoll::create(CreateFlags::CLOEXEC)?, own: Waker::new()? };
        set.watch(&set.own)?;
        Ok(set)
    }

    /// A descriptor for another process, to be made a [`RemoteWaker`] there. Keep it as long as that process may wake: with
    /// the last descriptor the wake-ups go that nobody has taken.
    ///
    /// # Errors
    /// When descriptors or watches run out.
    pub fn remote(&self) -> io::Result<OwnedFd> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // SAFETY: a command with a number; without `O_ASYNC` it changes nothing but what `F_GETSIG` says.
        if unsafe { libc::fcntl(descriptor.as_raw_fd(), F_SETSIG, MARK) } == -1 {
            return Err(io::Error::last_os_error());
        }
        self.watch(&descriptor)?;
        Ok(descriptor)
    }

    fn watch(&self, descriptor: impl AsFd) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::ET;
        Ok(epoll::add(&self.epoll, descriptor, EventData::new_u64(0), flags)?)
    }

    /// Wakes from this process.
    pub fn wake(&self) {
        self.own.wake();
    }

    /// Takes all wake-ups so far. Never blocks.
    pub fn drain(&self) {
        let mut events = [const { MaybeUninit::<Event>::uninit() }; TAKEN];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Nothing there is fine.
        let _ = epoll::wait(&self.epoll, &mut events, Some(&at_once));
    }
}

impl AsFd for WakeSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// Wakes the thread that waits for a [`WakeSet`] in another process.
#[derive(Debug)]
pub struct RemoteWaker(OwnedFd);

impl RemoteWaker {
    /// Over what [`WakeSet::remote`] made.
    pub fn from_fd(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    /// Wakes.
    ///
    /// # Errors
    /// When the descriptor was closed under it, also if another file has its number now.
    pub fn try_wake(&self) -> io::Result<()> {
        // SAFETY: a command without an argument, on whatever has the number now.
        if unsafe { libc::fcntl(self.0.as_raw_fd(), F_GETSIG) } != MARK {
            return Err(rustix::io::Errno::BADF.into());
        }
        match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            // Full: it is readable, and so the other side has been woken.
            Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;
    use crate::wait::wait_readable;

    fn is_awake(set: &WakeSet) -> io::Result<bool> {
        Ok(wait_readable(&[set.as_fd()], Some(now()))?[0])
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
            assert!(!is_awake(&set)?);
            remotes[0].try_wake()?;
            assert!(is_awake(&set)?);
            set.drain();
            assert!(!is_awake(&set)?);
            remotes.iter().try_for_each(RemoteWaker::try_wake)?;
            set.wake();
            assert_eq!(wait_readable(&[set.as_fd()], None)?, [true]);
            set.drain();
        }
        Ok(())
    }

    #[test]
    fn a_process_that_spoils_its_descriptor_spoils_no_other() -> io::Result<()> {
        let set = WakeSet::new()?;
        let (spoiled, other) = (set.remote()?, RemoteWaker::from_fd(set.remote()?));
        rustix::io::write(&spoiled, &(u64::MAX - 1).to_ne_bytes())?;
        rustix::fs::fcntl_setfl(&spoiled, rustix::fs::OFlags::empty())?;
        set.drain();
        set.drain();
        assert!(!is_awake(&set)?);
        other.try_wake()?;
        rustix::io::read(&spoiled, &mut [0; 8])?;
        assert!(is_awake(&set)?);
        Ok(())
    }

    #[test]
    fn a_wake_up_outlives_the_process_that_woke() -> io::Result<()> {
        let set = WakeSet::new()?;
        let kept = set.remote()?;
        let remote = RemoteWaker::from_fd(kept.try_clone()?);
        remote.try_wake()?;
        drop(remote);
        assert!(is_awake(&set)?);
        drop(kept);
        assert!(!is_awake(&set)?);
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
