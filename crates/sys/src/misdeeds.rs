//! For tests only: operations with which foreign code in a task can harm its process, and safe Rust
//! cannot.
//!
//! These functions break promises that other code relies on, and are still safe to call: the tests
//! that call them check how the rest of the process reacts. The feature of this name must not be
//! used by anything else.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Creates a copy of this process, which has only the calling thread. Returns the copy's pid, and
/// `None` in the copy.
///
/// # Errors
/// If the system has no room for another process.
pub fn fork() -> io::Result<Option<u32>> {
    // SAFETY: the C library's memory is usable in the copy; what else breaks there is the subject
    // of the test.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid.unsigned_abs())),
    }
}

/// Closes a descriptor, no matter who owns it.
pub fn close(descriptor: i32) {
    // SAFETY: no memory is involved. Its owner gets errors, or another file, which is the subject
    // of the test.
    unsafe { libc::close(descriptor) };
}

/// Closes every descriptor, no matter who owns it.
pub fn close_all() {
    // SAFETY: as in `close`.
    unsafe { libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0_u32) };
}

/// Replaces the file behind a descriptor, no matter who owns it.
///
/// # Errors
/// The error of `dup2`.
pub fn replace(descriptor: i32, by: impl AsFd) -> io::Result<()> {
    // SAFETY: as in `close`.
    let replaced = unsafe { libc::dup2(by.as_fd().as_raw_fd(), descriptor) };
    if replaced == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives up the rights of root for good, like a program that needs them only at its start. Returns
/// `true` if it changed anything; for another user it does nothing.
pub fn drop_privileges() -> bool {
    // SAFETY: no memory is involved. The rights that other code relies on are gone, which is the
    // subject of the test.
    unsafe { libc::geteuid() == 0 && libc::setgid(NOBODY) == 0 && libc::setuid(NOBODY) == 0 }
}

/// The user and group without rights, on every Linux.
const NOBODY: u32 = 65534;

/// Ignores SIGTERM from now on.
pub fn ignore_termination() {
    // SAFETY: ignoring a signal installs no handler; SIGTERM is a valid signal.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Returns another descriptor of the same open file, no matter who owns it.
///
/// # Errors
/// If it is not open, or descriptors run out.
pub fn duplicate(descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the number is used for this one call, which fails if it is not open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    crate::descriptors::above_streams(borrowed)
}

/// Writes over bytes that this program promised only to read, as a stray pointer does.
pub fn overwrite(bytes: &[u8], value: u8) {
    for byte in bytes {
        // SAFETY: there is none. The compiler may assume that the bytes stay as they are, so only
        // other processes may look at them afterwards. Their view is the subject of the test.
        unsafe { std::ptr::from_ref(byte).cast_mut().write_volatile(value) };
    }
}
