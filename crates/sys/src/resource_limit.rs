//! Limits on the resources of a process that the kernel enforces (setrlimit(2)).

use std::{io, ptr};

use crate::syscall::checked;

/// A resource with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// Returns the system's number.
    fn resource(self) -> u32 {
        [DATA, 7, 1, 6, 3, 4, CPU_TIME][self as usize]
    }
}

/// The system's numbers of limits.
const CPU_TIME: u32 = 0;
const DATA: u32 = 2;
const SIGNALS: u32 = 11;
const NICE: u32 = 13;
const PRIORITY: u32 = 14;

/// The number of limits that Linux has.
pub(crate) const LIMITS: u32 = 16;

/// No limit.
const INFINITE: u64 = u64::MAX;

/// Returns the limit up to which this process may raise its own; `None` for no limit.
pub fn highest(limited: Limited) -> Option<u64> {
    limit(0, limited.resource(), None).ok().map(|it| it.1).filter(|it| *it != INFINITE)
}

/// Sets a limit of another process, which has not been reaped. Without `is_final`, the process may
/// set it back.
///
/// # Errors
/// If the process belongs to another user, or the limit is above that of this process.
pub fn set(pid: u32, limited: Limited, value: u64, is_final: bool) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().filter(|it| *it > 0).ok_or(io::ErrorKind::NotFound)?;
    let highest = highest(limited).unwrap_or(INFINITE);
    let maximum = if is_final { value } else { highest };
    limit(pid, limited.resource(), Some((value.min(highest), maximum))).map(drop)
}

/// Sets a limit of this process and of those that it starts. Only makes a system call.
///
/// # Errors
/// If the limit is above the highest one.
pub(crate) fn set_own((limited, value): (Limited, u64)) -> io::Result<()> {
    // A process that has used up its time gets SIGXCPU, and SIGKILL at the highest limit.
    let more = u64::from(limited == Limited::CpuTime);
    limit(0, limited.resource(), Some((value, value.saturating_add(more)))).map(drop)
}

/// Sets the number of descriptors of this process, which it may set back, as far as it may. Only
/// makes system calls.
///
/// # Errors
/// If the system refuses it.
pub(crate) fn set_open_files(value: u64) -> io::Result<()> {
    let number = Limited::OpenFiles.resource();
    let (_, highest) = limit(0, number, None)?;
    limit(0, number, Some((value.min(highest), highest))).map(drop)
}

/// Makes the highest limits of this process the current ones, so that they can only fall. Private
/// memory is left out, which the host limits for each task. Only makes system calls.
///
/// # Errors
/// If the system refuses it.
pub(crate) fn lower_highest() -> io::Result<()> {
    for number in (0..LIMITS).filter(|it| *it != DATA) {
        let (current, highest) = limit(0, number, None)?;
        let lower = match number {
            // The user's other processes keep half of the timers and signals that may wait.
            SIGNALS => current / 2,
            NICE | PRIORITY => 0,
            // A process that has used up its time is killed a second later.
            CPU_TIME if current.checked_add(1) == Some(highest) => continue,
            _ => current,
        };
        limit(0, number, Some((lower, lower)))?;
    }
    Ok(())
}

/// Returns a limit of a process, 0 for this one, by its number: the current one, and the highest.
/// Sets it, if there is a new one. Only makes a system call.
///
/// # Errors
/// If the system refuses it.
pub(crate) fn limit(pid: i32, number: u32, new: Option<(u64, u64)>) -> io::Result<(u64, u64)> {
    let new = new.map(|(soft, hard)| libc::rlimit64 { rlim_cur: soft, rlim_max: hard });
    let new = new.as_ref().map_or(ptr::null(), ptr::from_ref);
    let mut old = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel reads one structure and fills the other, which are ours.
    checked(unsafe { syscall!(libc::SYS_prlimit64, pid, number, new, &raw mut old) })?;
    Ok((old.rlim_cur, old.rlim_max))
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
