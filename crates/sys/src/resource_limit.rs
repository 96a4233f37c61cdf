//! Limits on the resources of a process that the kernel enforces (setrlimit(2)).

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// A resource with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Bytes of private memory.
    Data,
    /// Number of the highest descriptor, and one.
    OpenFiles,
    /// Bytes of each file that is written to.
    FileSize,
    /// Threads of the user.
    Threads,
    /// Bytes of the main thread's stack.
    Stack,
    /// Bytes of a core dump.
    Core,
    /// Seconds of processor time.
    CpuTime,
}

impl Limited {
    fn resource(self) -> Resource {
        match self {
            Self::Data => Resource::Data,
            Self::OpenFiles => Resource::Nofile,
            Self::FileSize => Resource::Fsize,
            Self::Threads => Resource::Nproc,
            Self::Stack => Resource::Stack,
            Self::Core => Resource::Core,
            Self::CpuTime => Resource::Cpu,
        }
    }
}

/// Returns the limit up to which this process may raise its own; `None` for no limit.
pub fn highest(limited: Limited) -> Option<u64> {
    getrlimit(limited.resource()).maximum
}

/// Sets a limit of another process, which has not been reaped. Without `is_final`, the process may
/// set it back.
///
/// # Errors
/// If the process belongs to another user, or the limit is above that of this process.
pub fn set(pid: u32, limited: Limited, limit: u64, is_final: bool) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
    let highest = highest(limited);
    let maximum = if is_final { Some(limit) } else { highest };
    let limit = Rlimit { current: Some(highest.map_or(limit, |most| limit.min(most))), maximum };
    prlimit(Some(pid), limited.resource(), limit)?;
    Ok(())
}

/// Sets a limit of this process and of those that it starts. Only makes a system call.
///
/// # Errors
/// If the limit is above the highest one.
pub(crate) fn set_own((limited, limit): (Limited, u64)) -> Result<(), Errno> {
    // A process that has used up its time gets SIGXCPU, and SIGKILL at the highest limit.
    let more = u64::from(limited == Limited::CpuTime);
    let maximum = Some(limit.saturating_add(more));
    setrlimit(limited.resource(), Rlimit { current: Some(limit), maximum })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn another_process_has_the_limit() {
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        set(sleeper.id(), Limited::OpenFiles, 17, true).unwrap();
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", sleeper.id())).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
        assert_eq!(line.split_whitespace().filter(|word| *word == "17").count(), 2, "{line}");
    }
}
