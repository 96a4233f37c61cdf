//! A worker's end when its host ends, also when the parent-death signal is lost.
//!
//! The kernel takes the parent-death signal away from a process that changes its user or group, and does not send it when
//! the host has changed its own. A lifeline holds all the same, whatever the worker does, and costs nothing while nothing
//! happens:
//!
//! 1. The host has the writing end of a pipe, to which nobody writes. The kernel closes it when the host ends.
//! 2. Each worker has a reading end with a file description of its own, which it arms: the kernel sends SIGKILL to the
//!    owner of the description when the pipe changes (`O_ASYNC`, `F_SETSIG`), and the only change is the last writer's end.
//! 3. The right to send is judged by the user that the worker had when it armed the lifeline.
//!
//! It is no substitute for [`parent_death`](crate::parent_death): a copy of the host that `fork` has made has the writing end
//! too, and a task that closes all descriptors cuts the lifeline.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, fchmod, open};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::getpid;

/// From `asm-generic/fcntl.h`; the libc crate has it for some C libraries only.
const F_SETSIG: c_int = 10;

/// The host's end.
#[derive(Debug)]
pub struct Lifeline(OwnedFd);

impl Lifeline {
    /// Makes a lifeline, which ends with this process or when it is dropped.
    ///
    /// # Errors
    /// When descriptors run out.
    pub fn new() -> io::Result<Self> {
        let (_, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        // `end` opens the pipe anew, also after this process has changed its user.
        fchmod(&writer, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
        Ok(Self(writer))
    }

    /// Opens an end for one worker, which hands it to [`arm`].
    ///
    /// # Errors
    /// When descriptors run out, or `/proc` is missing.
    pub fn end(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        Ok(open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
    }
}

/// Has the kernel kill this process when the host ends, from now until the end of the process.
///
/// Returns false if the host has ended already.
///
/// # Errors
/// When the system knows no such signals.
pub fn arm(end: OwnedFd) -> io::Result<bool> {
    let pid = getpid().as_raw_nonzero().get();
    control(&end, libc::F_SETOWN, pid)?;
    control(&end, F_SETSIG, libc::SIGKILL)?;
    control(&end, libc::F_SETFL, libc::O_NONBLOCK | libc::O_ASYNC)?;
    // An end that came before the last line has sent nothing.
    let read = rustix::io::read(&end, &mut [0_u8]);
    // Open for life. The number must never be closed by us: a task may have closed it, and use it for a file of its own.
    let _ = end.into_raw_fd();
    Ok(read != Ok(0))
}

fn control(descriptor: &OwnedFd, command: c_int, argument: c_int) -> io::Result<()> {
    // SAFETY: the three commands take a number and touch no memory of this process.
    let result = unsafe { libc::fcntl(descriptor.as_raw_fd(), command, argument) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_of_a_host_that_is_gone_says_so() -> io::Result<()> {
        let host = Lifeline::new()?;
        let end = host.end()?;
        drop(host);
        assert!(!arm(end)?);
        Ok(())
    }
}
