//! Processes that we have not started, and so can neither reap nor hold the number of.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::descendants::{children, parent_of};
use super::{Signal, gone_is_fine};
use crate::clock::now;
use crate::wait::wait_readable;

/// A process that somebody else has started. It is signalled through its pidfd and in no other way.
#[derive(Debug)]
pub struct ForeignProcess {
    pid: u32,
    pidfd: OwnedFd,
}

/// What [`ForeignProcess::kill_tree`] found below the process, outside of its group or in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Descendants that were sent SIGKILL one by one.
    pub killed: Vec<u32>,
    /// Descendants that could not be: those of another user.
    pub escaped: Vec<u32>,
}

/// More descendants than this are not looked for: a process that forks without end is killed without them.
const MOST_DESCENDANTS: usize = 4_096;

impl ForeignProcess {
    /// The process that has this number now. The caller knows in some other way that it is the one that it means.
    ///
    /// # Errors
    /// When there is none, or no descriptors are left.
    pub fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        Ok(Self { pid, pidfd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// The process behind a pidfd, which had this number.
    pub(crate) fn from_pidfd(pid: u32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// Its number, which is another's once it was reaped.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The descriptor that becomes readable when the process has ended, and stays so.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Whether it has ended, reaped or not.
    ///
    /// # Errors
    /// What the system says.
    pub fn has_ended(&self) -> io::Result<bool> {
        Ok(wait_readable(&[self.pidfd()], Some(now()))?[0])
    }

    /// Sends a signal to the process. One that has ended already is not an error.
    ///
    /// # Errors
    /// When we may not.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        gone_is_fine(pidfd_send_signal(&self.pidfd, signal.into()))
    }

    /// Sends a signal to the group that the process leads; to the process alone if it leads none, or if the kernel is older
    /// than 6.9 and knows no groups behind pidfds: a number would be a guess.
    ///
    /// # Errors
    /// When we may not.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        match self.signal_group_by_pidfd(signal) {
            Err(Errno::SRCH | Errno::INVAL) => self.signal(signal),
            sent => Ok(sent?),
        }
    }

    fn signal_group_by_pidfd(&self, signal: Signal) -> Result<(), Errno> {
        let signal: rustix::process::Signal = signal.into();
        // SAFETY: no memory is involved: no siginfo is given, and the descriptor is open as long as `self`.
        let result = unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                signal.as_raw(),
                std::ptr::null::<libc::siginfo_t>(),
                libc::PIDFD_SIGNAL_PROCESS_GROUP,
            )
        };
        if result == 0 {
            return Ok(());
        }
        Err(io::Error::last_os_error()
            .raw_os_error()
            .map_or(Errno::INVAL, Errno::from_raw_os_error))
    }

    /// All that it has started, directly or not, whose parents live. We ourselves are not among them.
    pub fn descendants(&self) -> Vec<Self> {
        let mut found = self.living_children();
        add_descendants(&mut found, |_| ());
        found
    }

    /// Kills the process, the group that it leads, and its descendants, also those that have left the group. Those that
    /// were `known` before are killed with all below them, even if the process has ended since.
    ///
    /// Descendants are stopped before their own children are looked for, so that none is born behind our back. Whose
    /// parent has ended is nobody's child and not found, unless it is known or has stayed in the group.
    ///
    /// # Errors
    /// When we may not kill the process itself.
    pub fn kill_tree(&self, known: Vec<Self>) -> io::Result<Swept> {
        let mut swept = Swept::default();
        // What cannot be stopped is killed all the same.
        let _ = self.signal(Signal::Stop);
        let mut found = Vec::new();
        let alive = |process: &Self| process.has_ended().is_ok_and(|ended| !ended);
        let known = known.into_iter().filter(alive);
        for child in known.chain(self.living_children()) {
            add(&mut found, child);
        }
        add_descendants(&mut found, |process| {
            if process.signal(Signal::Stop).is_err() {
                swept.escaped.push(process.pid);
            }
        });
        let killed = self.signal_group(Signal::Kill).and_then(|()| self.signal(Signal::Kill));
        if killed.is_err() {
            let _ = self.signal(Signal::Continue);
        }
        killed?;
        for process in found {
            if process.signal(Signal::Kill).is_ok() {
                swept.killed.push(process.pid);
            }
        }
        Ok(swept)
    }

    /// Its children, without us. None once it has ended: its number may be another's then, and so may be what `/proc`
    /// says about it. As long as it has not, the number is its own, and so it is the parent that its children name.
    fn living_children(&self) -> Vec<Self> {
        let ours = |pid: &u32| *pid == std::process::id();
        let children = children(self.pid).into_iter().filter(|pid| !ours(pid));
        let children = children.filter_map(|pid| Self::open_child(pid, self.pid)).collect();
        if self.has_ended().is_ok_and(|ended| !ended) { children } else { Vec::new() }
    }

    /// The child of this number, if it has not ended: then what `/proc` says is said about it.
    fn open_child(pid: u32, parent: u32) -> Option<Self> {
        let process = Self::open(pid).ok()?;
        let is_child = parent_of(pid) == Some(parent) && !process.has_ended().ok()?;
        is_child.then_some(process)
    }
}

/// Adds what is below the processes that were found, after `visit` has seen the parent.
fn add_descendants(found: &mut Vec<ForeignProcess>, mut visit: impl FnMut(&ForeignProcess)) {
    let mut index = 0;
    while let Some(process) = found.get(index) {
        visit(process);
        for child in process.living_children() {
            add(found, child);
        }
        index += 1;
    }
}

fn add(found: &mut Vec<ForeignProcess>, process: ForeignProcess) {
    // Both have not ended, so the same number is the same process.
    let known = found.iter().any(|known| known.pid == process.pid);
    if !known && found.len() < MOST_DESCENDANTS {
        found.push(process);
    }
}
