//! File descriptors: pipes, and what a worker inherits.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

/// Closes every descriptor from `first` on that was inherited by mistake.
///
/// Only for the first moments of a worker, when nothing of its own is open yet: whatever holds one of these
/// descriptors gets errors from then on. It does nothing when more than one thread runs.
pub fn close_from(first: u32) {
    if crate::environment::require_one_thread().is_ok() {
        // SAFETY: no memory is involved. No other thread runs, and the only caller is a worker that has opened
        // nothing yet, so no owner of such a descriptor loses it.
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
    }
}

/// Has every descriptor from `first` on closed when this process executes another program.
pub fn close_on_exec_from(first: u32) {
    // SAFETY: the flag changes nothing for this process; the kernel checks the range.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Moves standard input to another descriptor and puts `/dev/null` in its place.
///
/// # Errors
/// When descriptors run out or `/dev/null` is missing.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let moved = fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?;
    let null = File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(moved)
}

/// A pipe for a child's stderr: the reading end never blocks, the writing end does.
///
/// # Errors
/// When descriptors run out.
pub fn stderr_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// Clears close-on-exec, so that the next program gets the descriptor. For tests of what is inherited.
///
/// # Errors
/// When the descriptor is not open.
pub fn keep_on_exec(descriptor: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::empty())?)
}

/// What `ps` and `top` call this process; the first 15 bytes of it.
pub fn name_process(name: &str) {
    if let Ok(name) = CString::new(name) {
        // A name is a courtesy; the process works without.
        let _ = rustix::thread::set_name(&name);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};

    use super::*;

    #[test]
    fn reading_an_empty_stderr_pipe_does_not_block() -> io::Result<()> {
        let (read, write) = stderr_pipe()?;
        let (mut read, mut write) = (File::from(read), File::from(write));
        let mut buffer = [0; 8];
        assert_eq!(
            read.read(&mut buffer).map_err(|error| error.kind()),
            Err(ErrorKind::WouldBlock)
        );
        write.write_all(b"hello")?;
        assert_eq!(read.read(&mut buffer)?, 5);
        Ok(())
    }
}
