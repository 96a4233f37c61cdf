//! Processes that we have not started, so we can neither reap them nor reserve their numbers.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::descendants::{children, is_shortage, parent_of};
use super::{Signal, gone_is_fine};
use crate::clock::now;
use crate::syscall::checked;
use crate::wait::wait_readable;

/// A process that somebody else has started. It is signalled only through its pidfd.
#[derive(Debug)]
pub struct ForeignProcess {
    pid: u32,
    pidfd: OwnedFd,
}

/// The descendants that [`ForeignProcess::kill_tree`] found, inside or outside the process's group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Descendants that were sent SIGKILL individually.
    pub killed: Vec<u32>,
    /// Descendants that could not be killed: those of another user, and those for which no
    /// descriptor was left.
    pub escaped: Vec<u32>,
    /// Processes whose children could not be read, because no descriptors were left.
    pub unseen: Vec<u32>,
}

/// Maximum number of descendants to search for: a process that forks endlessly is killed without
/// the rest.
const MAX_DESCENDANTS: usize = 4_096;

impl ForeignProcess {
    /// Opens the process that has this number now. The caller must know by other means that it is
    /// the intended one.
    ///
    /// # Errors
    /// If there is no such process, or no descriptors are left.
    pub fn open(pid: u32) -> io::Result<Self> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
        Ok(Self { pid, pidfd: pidfd_open(number, PidfdFlags::empty())? })
    }

    /// Wraps a pidfd of the process that had this number.
    pub(crate) fn from_pidfd(pid: u32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    /// Returns the process id, which may belong to another process after this one was reaped.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the descriptor that becomes readable when the process has ended, and stays so.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Returns `true` if the process has ended, reaped or not.
    ///
    /// # Errors
    /// The system's error.
    pub fn has_ended(&self) -> io::Result<bool> {
        Ok(wait_readable(&[self.pidfd()], Some(now()))?[0])
    }

    /// Sends a signal to the process. It is not an error if the process has already ended.
    ///
    /// # Errors
    /// If we may not.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        gone_is_fine(pidfd_send_signal(&self.pidfd, signal.into()))
    }

    /// Sends a signal to the group that the process leads. It goes to the process alone if it leads
    /// no group, or if the kernel is older than 6.9 and cannot signal groups through pidfds: a
    /// number would be a guess.
    ///
    /// # Errors
    /// If we may not.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        match self.signal_group_by_pidfd(signal) {
            Err(Errno::SRCH | Errno::INVAL) => self.signal(signal),
            sent => Ok(sent?),
        }
    }

    fn signal_group_by_pidfd(&self, signal: Signal) -> Result<(), Errno> {
        let signal: rustix::process::Signal = signal.into();
        // SAFETY: no memory is involved: no siginfo is given, and the descriptor is open as long as
        // `self`.
        checked(unsafe {
            syscall!(
                libc::SYS_pidfd_send_signal,
                self.pidfd.as_raw_fd(),
                signal.as_raw(),
                std::ptr::null::<libc::siginfo_t>(),
                libc::PIDFD_SIGNAL_PROCESS_GROUP,
            )
        })
        .map(drop)
    }

    /// Adds all direct and indirect children whose parents live to `known`, except this process
    /// itself. Removes those that have ended.
    pub fn note_descendants(&self, known: &mut Vec<Self>) {
        known.retain(Self::is_alive);
        let mut noted = known.iter().map(|process| process.pid).collect();
        add_children(self, known, &mut noted);
        let mut index = 0;
        while let Some(process) = known.get(index) {
            let mut below = Vec::new();
            add_children(process, &mut below, &mut noted);
            known.append(&mut below);
            index += 1;
        }
    }

    /// Kills the process, the group that it leads, and its descendants, including those that have
    /// left the group. The `known` processes are killed with all their descendants, even if the
    /// process has ended since; afterwards `known` is empty.
    ///
    /// Descendants are stopped before their own children are searched for, so that none is born
    /// unnoticed. A process whose parent has ended is not found, unless it is known or has stayed
    /// in the group. The search takes two descriptors, and one for each generation.
    ///
    /// # Errors
    /// If we may not kill the process itself. Nothing has happened then.
    pub fn kill_tree(&self, known: &mut Vec<Self>) -> io::Result<Swept> {
        self.signal(Signal::Stop)?;
        let mut sweep = Sweep::default();
        sweep.below(self);
        for process in known.drain(..).filter(Self::is_alive) {
            sweep.tree(process);
        }
        self.signal_group(Signal::Kill)?;
        self.signal(Signal::Kill)?;
        Ok(sweep.swept)
    }

    fn is_alive(&self) -> bool {
        self.has_ended().is_ok_and(|ended| !ended)
    }

    /// Returns the child with this number, if neither has ended: only then does `/proc` describe
    /// these two processes.
    fn child(&self, pid: u32) -> io::Result<Option<Self>> {
        let process = match Self::open(pid) {
            Err(error) if !is_shortage(&error) => return Ok(None),
            opened => opened?,
        };
        let is_ours = parent_of(pid)? == Some(self.pid) && process.is_alive() && self.is_alive();
        Ok(is_ours.then_some(process))
    }
}

/// The sweep of one tree.
#[derive(Default)]
struct Sweep {
    swept: Swept,
    seen: HashSet<u32>,
}

impl Sweep {
    /// Kills a process and all its descendants.
    fn tree(&mut self, process: ForeignProcess) {
        if self.is_new(process.pid) {
            self.stop(&process);
            self.descend(process);
        }
    }

    /// Kills all descendants of a stopped process.
    fn below(&mut self, process: &ForeignProcess) {
        for pid in self.children(process) {
            if let Some(child) = self.stopped_child(process, pid) {
                self.descend(child);
            }
        }
    }

    /// Kills all descendants of a stopped process, then the process. Depth first, so that few
    /// descriptors suffice.
    fn descend(&mut self, process: ForeignProcess) {
        let children = self.children(&process);
        let mut path = vec![(process, children)];
        while let Some((process, children)) = path.last_mut() {
            if let Some(pid) = children.pop() {
                if let Some(child) = self.stopped_child(process, pid) {
                    let children = self.children(&child);
                    path.push((child, children));
                }
            } else {
                if process.signal(Signal::Kill).is_ok() {
                    self.swept.killed.push(process.pid);
                }
                path.pop();
            }
        }
    }

    fn stopped_child(&mut self, parent: &ForeignProcess, pid: u32) -> Option<ForeignProcess> {
        if !self.is_new(pid) {
            return None;
        }
        let Ok(child) = parent.child(pid) else {
            self.swept.escaped.push(pid);
            return None;
        };
        child.inspect(|child| self.stop(child))
    }

    /// Stops a process. If that fails, the process is still killed if possible.
    fn stop(&mut self, process: &ForeignProcess) {
        if process.signal(Signal::Stop).is_err() {
            self.swept.escaped.push(process.pid);
        }
    }

    fn children(&mut self, process: &ForeignProcess) -> Vec<u32> {
        children(process.pid).unwrap_or_else(|_| {
            self.swept.unseen.push(process.pid);
            Vec::new()
        })
    }

    fn is_new(&mut self, pid: u32) -> bool {
        pid != std::process::id() && self.seen.len() < MAX_DESCENDANTS && self.seen.insert(pid)
    }
}

/// Adds those children of a process that are not noted yet.
fn add_children(
    process: &ForeignProcess,
    found: &mut Vec<ForeignProcess>,
    noted: &mut HashSet<u32>,
) {
    for pid in children(process.pid).unwrap_or_default() {
        let is_wanted = pid != std::process::id() && noted.len() < MAX_DESCENDANTS;
        // Noted processes have not ended, so the same number means the same process.
        if is_wanted
            && !noted.contains(&pid)
            && let Ok(Some(child)) = process.child(pid)
        {
            noted.insert(pid);
            found.push(child);
        }
    }
}
