//! Processes that we have not started, and so can neither reap nor hold the number of.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

use super::descendants::{children, is_shortage, parent_of};
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
#[non_exhaustive]
pub struct Swept {
    /// Descendants that were sent SIGKILL one by one.
    pub killed: Vec<u32>,
    /// Descendants that could not be: those of another user, and those for which there was no descriptor left.
    pub escaped: Vec<u32>,
    /// Processes whose children could not be looked for, because no descriptors were left.
    pub unseen: Vec<u32>,
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

    /// Adds all that it has started, directly or not, and whose parents live, to those that are known; we ourselves are not
    /// among them. Those that have ended go.
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

    /// Kills the process, the group that it leads, and its descendants, also those that have left the group. Those that
    /// are `known` are killed with all below them, even if the process has ended since; afterwards none is known.
    ///
    /// Descendants are stopped before their own children are looked for, so that none is born behind our back. Whose
    /// parent has ended is nobody's child and not found, unless it is known or has stayed in the group. It takes two
    /// descriptors, and one for each generation.
    ///
    /// # Errors
    /// When we may not kill the process itself. Nothing has happened then.
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

    /// Its child of this number, if both have not ended: then what `/proc` says is said about them.
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
    /// Kills a process and all below it.
    fn tree(&mut self, process: ForeignProcess) {
        if self.is_new(process.pid) {
            self.stop(&process);
            self.descend(process);
        }
    }

    /// Kills all below a process that is stopped.
    fn below(&mut self, process: &ForeignProcess) {
        for pid in self.children(process) {
            if let Some(child) = self.stopped_child(process, pid) {
                self.descend(child);
            }
        }
    }

    /// Kills all below a process that is stopped, then the process. Depth first, so that few descriptors are enough.
    fn descend(&mut self, process: ForeignProcess) {
        let children = self.children(&process);
        let mut line = vec![(process, children)];
        while let Some((process, children)) = line.last_mut() {
            if let Some(pid) = children.pop() {
                if let Some(child) = self.stopped_child(process, pid) {
                    let children = self.children(&child);
                    line.push((child, children));
                }
            } else {
                if process.signal(Signal::Kill).is_ok() {
                    self.swept.killed.push(process.pid);
                }
                line.pop();
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

    /// What cannot be stopped is killed all the same, if it can.
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
        pid != std::process::id() && self.seen.len() < MOST_DESCENDANTS && self.seen.insert(pid)
    }
}

/// Adds those children of a process that are not noted.
fn add_children(
    process: &ForeignProcess,
    found: &mut Vec<ForeignProcess>,
    noted: &mut HashSet<u32>,
) {
    for pid in children(process.pid).unwrap_or_default() {
        let is_wanted = pid != std::process::id() && noted.len() < MOST_DESCENDANTS;
        // Those that are noted have not ended, so the same number is the same process.
        if is_wanted
            && !noted.contains(&pid)
            && let Ok(Some(child)) = process.child(pid)
        {
            noted.insert(pid);
            found.push(child);
        }
    }
}
