//! The end of a process, with the resources that it has used.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};

use super::Exit;
use crate::syscall::checked;

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Exit status.
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

/// Reaps a process if it has ended.
pub(super) fn reap(pidfd: BorrowedFd<'_>) -> Result<Option<Ended>, Errno> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    retry_on_intr(|| {
        // SAFETY: both structures are ours and large enough; the C library's `waitid` has no
        // argument for the usage, the system call has.
        checked(unsafe {
            syscall!(
                libc::SYS_waitid,
                libc::P_PIDFD,
                pidfd.as_raw_fd(),
                info.as_mut_ptr(),
                libc::WEXITED | libc::WNOHANG,
                usage.as_mut_ptr(),
            )
        })
    })?;
    // SAFETY: zeroed structures of numbers are valid; the kernel has filled them, or left the first
    // zero if the process has not ended. `si_pid` and `si_status` are valid for the events that
    // `waitid` reports.
    Ok(unsafe {
        let (info, usage) = (info.assume_init(), usage.assume_init());
        (info.si_pid() != 0).then(|| Ended {
            exit: exit_of(info.si_code, info.si_status()),
            usage: Usage::from(usage),
        })
    })
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

/// Returns the exit status that `waitid` reports in these two fields.
pub(crate) fn exit_of(code: libc::c_int, status: libc::c_int) -> Exit {
    if code == libc::CLD_EXITED { Exit::Code(status) } else { Exit::Signal(status) }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0))
        + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
