//! For tests only: what foreign code in a task can do to its process and safe Rust cannot.
//!
//! These functions break promises that other code relies on, and are safe to call all the same: the tests that call them
//! are about what the rest of the process does then. The feature of this name must not be used by anything else.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Makes a copy of this process, which has the calling thread only. Returns the copy's pid, and `None` in the copy.
///
/// # Errors
/// When the system has no room for another process.
pub fn fork() -> io::Result<Option<u32>> {
    // SAFETY: the C library's memory is usable in the copy; what else breaks there is what the test is about.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid.unsigned_abs())),
    }
}

/// Closes a descriptor, whoever owns it.
pub fn close(descriptor: i32) {
    // SAFETY: no memory is involved. Its owner gets errors, or another file, which is what the test is about.
    unsafe { libc::close(descriptor) };
}

/// Closes every descriptor, whoever owns it.
pub fn close_all() {
    // SAFETY: as in `close`.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0_u32) };
}

/// Puts another file in the place of a descriptor, whoever owns it.
///
/// # Errors
/// What `dup2` says.
pub fn replace(descriptor: i32, by: impl AsFd) -> io::Result<()> {
    // SAFETY: as in `close`.
    let replaced = unsafe { libc::dup2(by.as_fd().as_raw_fd(), descriptor) };
    if replaced == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives up the rights of root for good, as a program does that needs them only at its start. Does nothing for another user,
/// and returns whether it did something.
pub fn drop_privileges() -> bool {
    // SAFETY: no memory is involved. The rights that other code relies on are gone, which is what the test is about.
    unsafe { libc::geteuid() == 0 && libc::setgid(NOBODY) == 0 && libc::setuid(NOBODY) == 0 }
}

/// The user and group without rights, on every Linux.
const NOBODY: u32 = 65534;

/// Ignores SIGTERM from now on.
pub fn ignore_termination() {
    // SAFETY: ignoring a signal installs no handler; SIGTERM is a valid signal.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Another descriptor of the same open file, whoever owns it.
///
/// # Errors
/// When it is not open, or descriptors run out.
pub fn duplicate(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the number is used for this one call, which fails when it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    Ok(rustix::io::fcntl_dupfd_cloexec(borrowed, 3)?)
}
