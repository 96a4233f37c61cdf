//! Parks threads so that they wake up on the core of the thread that wakes them: a synchronous
//! wake-up, in the kernel's words (`WF_SYNC`).
//!
//! The kernel wakes a parked thread on the core where it last ran, if that is not busier than the
//! waker's. Where a thread wakes the next one and then sleeps, and another process keeps the other
//! core busy, the woken thread displaces that process, although the waker's core becomes free.
//! Futexes have no way to say so. A write to a pipe does: the kernel takes it as a hint that the
//! writer is about to sleep (`wake_up_interruptible_sync_poll` in `pipe_write` of fs/pipe.c, and
//! `wake_affine_idle` in kernel/sched/fair.c).
//!
//! A pipe takes two descriptors, so only some threads get one: those that come first, until an
//! eighth of the process's limit is taken.

use std::cell::RefCell;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, getrlimit};
use rustix::time::Timespec;

use crate::fork::Origin;

/// Parks the thread that it belongs to, and wakes it.
#[derive(Debug)]
pub struct Parker {
    /// Blocks, and only the thread itself reads it.
    read: OwnedFd,
    /// Does not block: while the pipe is full, the thread is about to wake up in any case.
    write: OwnedFd,
    origin: Origin,
}

/// Number of parkers in this process.
static PARKERS: AtomicUsize = AtomicUsize::new(0);

/// The share of the limit on descriptors that parkers may take.
const SHARE: u64 = 8;

const DESCRIPTORS: u64 = 2;

thread_local! {
    static OWN: RefCell<Option<Arc<Parker>>> = const { RefCell::new(None) };
}

impl Parker {
    /// Returns the parker of this thread, which is created on first use and lives as long as the
    /// thread. Returns `None` if too many descriptors are in use, or while the thread ends.
    pub fn of_this_thread() -> Option<Arc<Self>> {
        let find = |own: &RefCell<Option<Arc<Self>>>| {
            let mut own = own.borrow_mut();
            if !own.as_ref().is_some_and(|parker| parker.origin.is_here()) {
                *own = Self::create().ok().map(Arc::new);
            }
            own.clone()
        };
        OWN.try_with(find).ok().flatten()
    }

    fn create() -> io::Result<Self> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(limit / SHARE / DESCRIPTORS).unwrap_or(usize::MAX);
        if PARKERS.fetch_add(1, Ordering::Relaxed) >= most {
            PARKERS.fetch_sub(1, Ordering::Relaxed);
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let pipe = || {
            let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&write, true)?;
            Ok((read, write))
        };
        let (read, write) =
            pipe().inspect_err(|_: &io::Error| _ = PARKERS.fetch_sub(1, Ordering::Relaxed))?;
        Ok(Self { read, write, origin: Origin::here() })
    }

    /// Sleeps until [`unpark`](Self::unpark) or the end of `timeout`, and also now and then without
    /// a reason. Call it only on the parker's thread.
    pub fn park(&self, timeout: Option<Duration>) {
        if let Some(timeout) = timeout {
            let mut polled = [PollFd::new(&self.read, PollFlags::IN)];
            let timeout = Timespec::try_from(timeout).ok();
            if !matches!(poll(&mut polled, timeout.as_ref()), Ok(1..)) {
                return;
            }
        }
        // Several at once: a wake-up that comes late would end a later sleep without a reason. An
        // error, for example after a signal, is such a wake-up, too.
        let _ = rustix::io::read(&self.read, &mut [0; 64]);
    }

    /// Wakes the thread if it is parked, or else the next time that it parks.
    pub fn unpark(&self) {
        // If the pipe is full, it has a wake-up already.
        let _ = rustix::io::write(&self.write, &[1]);
    }
}

impl Drop for Parker {
    fn drop(&mut self) {
        // A copy of the process inherits the number with the descriptors.
        PARKERS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::fork::tests::in_a_copy;

    /// Much longer than a test may take.
    const LONG: Option<Duration> = Some(Duration::from_secs(3600));

    fn parker() -> Arc<Parker> {
        Parker::of_this_thread().expect("descriptors are left")
    }

    #[test]
    fn a_parked_thread_is_woken() {
        for timeout in [None, LONG] {
            let (send, receive) = mpsc::channel();
            let sleeper = thread::spawn(move || {
                send.send(parker()).expect("a receiver");
                parker().park(timeout);
            });
            receive.recv().expect("a parker").unpark();
            sleeper.join().expect("no panic");
        }
    }

    #[test]
    fn wake_ups_before_a_sleep_end_one_sleep() {
        let parker = parker();
        for _ in 0..3 {
            parker.unpark();
        }
        parker.park(None);
        let mut polled = [PollFd::new(&parker.read, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        assert_eq!(poll(&mut polled, Some(&at_once)).ok(), Some(0));
    }

    #[test]
    fn a_sleep_ends_after_its_timeout() {
        parker().park(Some(Duration::from_millis(1)));
    }

    #[test]
    fn waking_a_thread_that_does_not_sleep_never_blocks() {
        let parker = parker();
        // More than a pipe holds.
        for _ in 0..100_000 {
            parker.unpark();
        }
        parker.park(LONG);
    }

    #[test]
    fn a_thread_keeps_its_parker_and_a_fork_has_its_own() {
        let before = parker();
        assert!(Arc::ptr_eq(&before, &parker()));
        assert!(in_a_copy(|| !Arc::ptr_eq(&before, &parker())));
    }

    #[test]
    fn parkers_leave_most_descriptors_to_the_program() {
        let limit = getrlimit(Resource::Nofile).current.expect("a limit");
        let most = usize::try_from(limit / SHARE / DESCRIPTORS).expect("a small number");
        let made: Vec<_> = (0..1_000_000).map_while(|_| Parker::create().ok()).collect();
        assert!(made.len() <= most);
        drop(made);
        assert!(Parker::create().is_ok());
    }
}
