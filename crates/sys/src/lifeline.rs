//! Ends a worker when its host ends, even if the parent-death signal is lost.
//!
//! The kernel takes the parent-death signal away from a process that changes its user or group, and
//! does not send it if the host has changed its own. A lifeline holds in both cases, whatever the
//! worker does, and has no cost while nothing happens:
//!
//! 1. The host has one end of a pair of sockets for each worker, to which nobody writes. The kernel
//!    closes it when the host ends.
//! 2. The worker arms the other end: the kernel sends SIGKILL to its owner when it changes
//!    (`O_ASYNC`, `F_SETSIG`), and the only change is the end of the host's.
//! 3. The kernel checks the right to send against the user that the worker had when it armed the
//!    lifeline.
//!
//! A pipe for all workers would do with one descriptor, but a worker that may open it again, by
//! `/proc`, could write to it and so end all of them. A socket cannot be opened again.
//!
//! It does not replace [`parent_death`](crate::parent_death): a copy of the host that `fork` has
//! made has the host's end too, and a task that closes all descriptors cuts the lifeline.
//!
//! A worker that has ended holds no lifeline, so the processes that it has started need another:
//! see [`GroupLifeline`].

mod group;

pub use group::GroupLifeline;

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::getpid;

use crate::syscall::checked;

/// From `asm-generic/fcntl.h`; the libc crate defines it only for some C libraries.
pub(crate) const F_SETSIG: c_int = 10;

/// The host's end of a worker's lifeline.
#[derive(Debug)]
pub struct Lifeline {
    _end: OwnedFd,
}

impl Lifeline {
    /// Creates a lifeline, which ends with this process or on drop. The other end is for the
    /// worker, which passes it to [`arm`].
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn new() -> io::Result<(Self, OwnedFd)> {
        let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::STREAM);
        let (end, worker_end) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self { _end: end }, worker_end))
    }
}

/// Makes the kernel kill this process when the host ends, from now until the end of the process.
///
/// Returns `false` if the host has already ended.
///
/// # Errors
/// If the system does not support such signals.
pub fn arm(end: OwnedFd) -> io::Result<bool> {
    arm_for(end, getpid().as_raw_nonzero().get())
}

/// Like [`arm`], for the group that this process leads, with the copies that it will make.
///
/// # Errors
/// Like `arm`.
pub fn arm_group(end: OwnedFd) -> io::Result<bool> {
    arm_for(end, -getpid().as_raw_nonzero().get())
}

fn arm_for(end: OwnedFd, owner: c_int) -> io::Result<bool> {
    kill_on_change(&end, owner)?;
    // If the host ended before the previous line, no signal was sent.
    let read = rustix::io::read(&end, &mut [0_u8]);
    // Stays open for life. We must never close the number: a task may have closed it, and use it
    // for a file of its own.
    let _ = end.into_raw_fd();
    Ok(read != Ok(0))
}

/// Makes the kernel send SIGKILL to `owner` when the pipe or socket changes. A negative number is a
/// group.
fn kill_on_change(end: &OwnedFd, owner: c_int) -> io::Result<()> {
    control(end, libc::F_SETOWN, owner)?;
    control(end, F_SETSIG, libc::SIGKILL)?;
    control(end, libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC)
}

fn control(descriptor: &OwnedFd, command: c_int, argument: c_int) -> io::Result<()> {
    // SAFETY: the three commands take a number and touch no memory of this process.
    Ok(checked(unsafe { libc::fcntl(descriptor.as_raw_fd(), command, argument) }).map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arming_the_end_of_a_dead_host_returns_false() -> io::Result<()> {
        let (host, end) = Lifeline::new()?;
        drop(host);
        assert!(!arm(end)?);
        Ok(())
    }
}
