//! Adopts processes whose parents have ended. The nearest subreaper adopts them, or else process 1.
//!
//! Only for a program that manages all of its children: a library that made its host a subreaper
//! would have it adopt strangers, and `wait` for them.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, child_subreaper, getpgid, getpid, pidfd_open,
    pidfd_send_signal, set_child_subreaper, test_kill_process_group, waitid,
};

use crate::clock::now;
use crate::process::{environment_of, folder_of};
use crate::syscall::checked;
use crate::wait::wait_readable;

/// Makes this process adopt the orphans among its descendants.
///
/// # Errors
/// On kernels before 3.4.
pub fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Returns `true` if orphans among the descendants of this process come to it: it has made itself
/// their subreaper, or is process 1, as in a container.
pub fn come_here() -> bool {
    child_subreaper().is_ok_and(|it| it.is_some()) || std::process::id() == 1
}

/// Returns `true` if a group has members, even dead ones that were not reaped.
pub fn has_members(group: u32) -> bool {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    // The group of another user has members, too.
    group.is_some_and(|group| test_kill_process_group(group) != Err(Errno::SRCH))
}

/// A child of this process, adopted or not. Its pid belongs to it as long as nobody reaps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    pid: Pid,
}

/// A child that was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// Its process id.
    pub pid: u32,
    /// `true` if the system has stopped it because it wants to use the terminal.
    pub wants_terminal: bool,
}

impl Child {
    /// Returns a child that was stopped since the last call, if there is one.
    pub fn any_stopped() -> Option<Stopped> {
        let (pid, _, signal) = changed(libc::WSTOPPED | libc::WNOHANG)?;
        let wants_terminal = matches!(signal, libc::SIGTTIN | libc::SIGTTOU);
        Some(Stopped { pid: u32::try_from(pid).ok()?, wants_terminal })
    }

    /// Returns a child that has ended and was not reaped, if there is one.
    pub fn any_dead() -> Option<Self> {
        let (pid, ..) = changed(libc::WEXITED | libc::WNOWAIT | libc::WNOHANG)?;
        Pid::from_raw(pid).map(|pid| Self { pid })
    }

    /// Returns all children of this process that the kernel lists: those of the calling thread.
    pub fn all() -> Vec<Self> {
        let list = fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
        list.split_whitespace()
            .filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw))
            .map(|pid| Self { pid })
            .collect()
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns the group of the process.
    pub fn group(&self) -> Option<u32> {
        getpgid(Some(self.pid)).ok().map(|group| group.as_raw_nonzero().get().unsigned_abs())
    }

    /// Returns the name of the process.
    pub fn name(&self) -> String {
        let name = fs::read_to_string(folder_of(self.pid()).join("comm")).unwrap_or_default();
        name.trim_end().to_owned()
    }

    /// Returns the value of a variable in the environment with which the process was started.
    pub fn variable(&self, name: &str) -> Option<String> {
        let environment = environment_of(self.pid());
        environment.split(|byte| *byte == 0).find_map(|entry| {
            let entry = std::str::from_utf8(entry).ok()?;
            entry.strip_prefix(name)?.strip_prefix('=').map(str::to_owned)
        })
    }

    /// Reaps the child if it has ended.
    pub fn reap(&self) {
        // Somebody else may have reaped it, which is just as good.
        let _ = waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }

    /// Kills the child, waits at most `limit` for its end, and reaps it.
    ///
    /// # Errors
    /// If it has not ended in time; a process in an uninterruptible wait may take longer.
    pub fn kill(&self, limit: Duration) -> io::Result<()> {
        let pidfd: OwnedFd = pidfd_open(self.pid, PidfdFlags::empty())?;
        pidfd_send_signal(&pidfd, Signal::KILL)?;
        let deadline = now().saturating_add(limit);
        if wait_readable(&[pidfd.as_fd()], Some(deadline))? == [true] {
            self.reap();
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }
}

/// Returns a child that has changed its state, if there is one: its pid, what has happened, and its
/// status. Waits for one unless told otherwise.
pub(crate) fn changed(options: libc::c_int) -> Option<(libc::pid_t, libc::c_int, libc::c_int)> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the structure is ours.
    let mut wait = || unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) };
    retry_on_intr(|| checked(wait())).ok()?;
    // SAFETY: zeroed it is valid, and its pid stays zero if no child has changed its state. Pid and
    // status are valid for the events that `waitid` reports.
    let (pid, code, status) = unsafe {
        let info = info.assume_init();
        (info.si_pid(), info.si_code, info.si_status())
    };
    (pid != 0).then_some((pid, code, status))
}
