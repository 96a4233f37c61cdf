//! File descriptors: pipes, and what a worker inherits.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};

/// Sees to it that descriptors which the parent left open by mistake go no further. Standard streams stay.
///
/// A descriptor that has survived `exec` is not close-on-exec, and those that Rust opens are. So the first call in a process
/// closes what is not close-on-exec. Where several threads run it cannot: one of them may just have opened a
/// file without the flag. Then, and in later calls, they only become close-on-exec.
///
/// A file that was opened without the flag before the first call is lost: it looks like one that was inherited.
pub fn shed_inherited() {
    static SHED: AtomicBool = AtomicBool::new(false);
    if !SHED.swap(true, Ordering::Relaxed) && crate::environment::require_one_thread().is_ok() {
        for descriptor in inherited() {
            // SAFETY: no memory is involved. The flag says that the descriptor came with this process, so that no value
            // owns it. This runs once, before the program has begun its work; an owner that has made a
            // descriptor without the flag until then gets errors, as the documentation says.
            unsafe { libc::close(descriptor) };
        }
    }
    close_on_exec_from(FIRST_OWN);
}

/// The first descriptor that is no standard stream.
const FIRST_OWN: u32 = 3;

/// The descriptors that are not close-on-exec, without standard streams. None where there is no `/proc`.
fn inherited() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return Vec::new();
    };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // SAFETY: the command reads a flag and touches no memory; it fails for a number that is not open.
    let flags = |number: RawFd| unsafe { libc::fcntl(number, libc::F_GETFD) };
    numbers
        .filter(|number: &RawFd| number.unsigned_abs() >= FIRST_OWN)
        .filter(|number| matches!(flags(*number), flags if flags != -1 && flags & libc::FD_CLOEXEC == 0))
        .collect()
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
