//! System calls that rustix has no function for.

use std::io;

use rustix::io::Errno;

/// Returns what a system call has returned, or the error that it has set. Allocates nothing.
pub(crate) fn checked(result: impl Into<i64>) -> Result<i64, Errno> {
    match result.into() {
        -1 => Err(last_errno()),
        result => Ok(result),
    }
}

/// Returns the error that the last system call of this thread has set.
pub(crate) fn last_errno() -> Errno {
    Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// Calls `libc::syscall`, which takes any number of arguments; elsewhere a macro stands in for it.
#[cfg(all(target_os = "linux", not(brigade_elsewhere)))]
macro_rules! syscall {
    ($($argument:expr),* $(,)?) => { libc::syscall($($argument),*) };
}

#[cfg(any(not(target_os = "linux"), brigade_elsewhere))]
macro_rules! syscall {
    ($($argument:tt)*) => { libc::syscall!($($argument)*) };
}
