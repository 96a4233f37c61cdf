//! A launched program, with the group that it leads.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, kill_process_group, pidfd_send_signal};

use crate::clock::now;
use crate::fork::Origin;
use crate::guardian::GroupSlot;
use crate::process::{Exit, Signal};
use crate::wait::wait_readable;

/// The leader of a group of processes.
///
/// It belongs to one thread, so that the rules of [`process`](crate::process) hold without a lock:
/// the group is signalled only while its leader is unreaped. Dropping an unreaped leader kills the
/// group and reaps the leader; in a copy of this process that `fork` has made the drop has no
/// effect.
#[derive(Debug)]
pub struct Leader {
    pid: libc::pid_t,
    pidfd: OwnedFd,
    reaped: bool,
    origin: Origin,
}

/// The end of a leader, with the resources that it and the children it waited for have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Exit status of the leader.
    pub exit: Exit,
    /// Resources used.
    pub usage: Usage,
}

/// Resources that a process and the children it waited for have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident memory of one process, in bytes. It includes memory that the process
    /// shared with its parent before it executed its program, so it is never less than the
    /// parent's.
    pub peak_memory: u64,
}

/// Timeout of a drop: an unkillable process must not hold up its parent forever.
const DROP_LIMIT: Duration = Duration::from_secs(1);

impl Leader {
    pub(super) fn new(pid: libc::pid_t, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd, reaped: false, origin: Origin::here() }
    }

    /// Returns the leader's process id, which is also that of its group.
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// Returns the descriptor that becomes readable when the leader has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Leaves the group to itself: it is neither signalled nor reaped any more.
    pub fn abandon(&mut self) {
        self.reaped = true;
    }

    /// Sends a signal to every process of the group; does nothing after the leader was reaped.
    ///
    /// # Errors
    /// The error of `kill`; a group that is gone is not an error.
    pub fn signal_group(&self, signal: Signal) -> io::Result<()> {
        if self.reaped {
            return Ok(());
        }
        let sent = Pid::from_raw(self.pid)
            .map_or(Err(Errno::SRCH), |group| kill_process_group(group, signal.into()));
        // A leader that has moved to another group must not escape.
        if sent == Err(Errno::SRCH) || matches!(signal, Signal::Kill) {
            let _ = pidfd_send_signal(&self.pidfd, signal.into());
        }
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reaps the leader if it has ended. Before that, the rest of its group is killed, while the
    /// group's number is still reserved, and its entry is cleared.
    ///
    /// # Errors
    /// `ECHILD` if somebody else has reaped it.
    pub fn try_reap(&mut self, slot: Option<&GroupSlot>) -> io::Result<Option<Ended>> {
        if self.wait(libc::WNOHANG | libc::WNOWAIT)?.is_none() {
            return Ok(None);
        }
        let _ = self.signal_group(Signal::Kill);
        if let Some(slot) = slot {
            slot.clear();
        }
        let ended = self.wait(libc::WNOHANG)?;
        self.reaped = ended.is_some();
        Ok(ended)
    }

    fn wait(&mut self, options: libc::c_int) -> io::Result<Option<Ended>> {
        let descriptor = self.pidfd.as_raw_fd();
        loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            let mut usage = MaybeUninit::<libc::rusage>::zeroed();
            // SAFETY: both structures are ours and large enough; the C library's `waitid` has no
            // argument for the usage, the system call has.
            let waited = unsafe {
                libc::syscall(
                    libc::SYS_waitid,
                    libc::P_PIDFD,
                    descriptor,
                    info.as_mut_ptr(),
                    options | libc::WEXITED,
                    usage.as_mut_ptr(),
                )
            };
            if waited == -1 {
                let error = io::Error::last_os_error();
                if error.kind() == io::ErrorKind::Interrupted {
                    continue;
                }
                self.reaped |= error.raw_os_error() == Some(libc::ECHILD);
                return Err(error);
            }
            // SAFETY: zeroed structures of numbers are valid; the kernel has filled them, or left
            // the first zero if no child has ended. `si_pid` and `si_status` are valid for the
            // events that `waitid` reports.
            return Ok(unsafe {
                let (info, usage) = (info.assume_init(), usage.assume_init());
                (info.si_pid() != 0).then(|| Ended {
                    exit: exit(info.si_code, info.si_status()),
                    usage: Usage::from(usage),
                })
            });
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped && self.origin.is_here() {
            // Fails only if somebody else has reaped it, or if it has become another user's.
            let _ = self.signal_group(Signal::Kill);
            let deadline = now().saturating_add(DROP_LIMIT);
            let _ = wait_readable(&[self.pidfd.as_fd()], Some(deadline));
            let _ = self.wait(libc::WNOHANG);
        }
    }
}

impl From<libc::rusage> for Usage {
    fn from(usage: libc::rusage) -> Self {
        Self {
            user: duration(usage.ru_utime),
            system: duration(usage.ru_stime),
            // Linux counts in KiB.
            peak_memory: u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
        }
    }
}

fn exit(code: libc::c_int, status: libc::c_int) -> Exit {
    if code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
