//! Handles file descriptors: pipes, files in memory, and the descriptors that a worker inherits.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::pipe::{PipeFlags, pipe_with};

/// Keeps descriptors that the parent left open by mistake from going any further. Standard streams
/// stay.
///
/// A descriptor that has survived `exec` is not close-on-exec, while those that Rust opens are. So
/// the first call in a process closes the descriptors that are not close-on-exec. It cannot do that
/// while several threads run, because one of them may just have opened a file without the flag.
/// Then, and in later calls, they only become close-on-exec.
///
/// A file that was opened without the flag before the first call is lost: it looks like an
/// inherited one.
pub fn shed_inherited() {
    static SHED: AtomicBool = AtomicBool::new(false);
    if !SHED.swap(true, Ordering::Relaxed) && crate::environment::require_one_thread().is_ok() {
        for descriptor in inherited() {
            // SAFETY: no memory is involved. The flag shows that the descriptor came with this
            // process, so no value owns it. This runs once, before the program has begun its work;
            // an owner that has created a descriptor without the flag until then gets errors, as
            // documented.
            unsafe { libc::close(descriptor) };
        }
    }
    close_on_exec_from(FIRST_OWN);
}

/// The first descriptor that is not a standard stream.
const FIRST_OWN: u32 = 3;

/// Returns the descriptors that are not close-on-exec, without standard streams. Returns none if
/// there is no `/proc`.
fn inherited() -> Vec<RawFd> {
    if only_standard_streams_are_open() {
        return Vec::new();
    }
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_kept = |number| flags(number).is_some_and(|flags| flags & libc::FD_CLOEXEC == 0);
    numbers.filter(|it: &RawFd| it.unsigned_abs() >= FIRST_OWN && is_kept(*it)).collect()
}

/// Returns `true` if only the standard streams are open, as in nearly every new worker. Listing
/// `/proc/self/fd` takes seven system calls and makes the kernel create a directory entry for each
/// descriptor; reading its size, which Linux reports from 6.2 on, takes one. An older kernel
/// reports 0.
fn only_standard_streams_are_open() -> bool {
    let open = std::fs::metadata("/proc/self/fd").map_or(0, |folder| folder.size());
    open == u64::from(FIRST_OWN)
        && (0..FIRST_OWN.cast_signed()).all(|number| flags(number).is_some())
}

/// Returns the descriptor's flags if it is open.
fn flags(number: RawFd) -> Option<i32> {
    // SAFETY: the command reads a flag and touches no memory; it fails for a number that is not
    // open.
    Some(unsafe { libc::fcntl(number, libc::F_GETFD, 0) }).filter(|flags| *flags != -1)
}

/// Opens `/dev/null` for each standard stream that is closed. Otherwise the next file that this
/// process opens is written to by everybody who prints. Call it before opening files.
pub fn fill_streams() {
    for number in (0..FIRST_OWN.cast_signed()).filter(|number| flags(*number).is_none()) {
        let null = open("/dev/null", OFlags::RDWR, Mode::empty());
        // The system takes the lowest number that is free, unless another thread was faster.
        std::mem::forget(null.ok().filter(|null| null.as_raw_fd() == number));
    }
}

/// Marks every descriptor from `first` on as close-on-exec.
pub fn close_on_exec_from(first: u32) {
    // SAFETY: the flag changes nothing for this process; the kernel checks the range.
    unsafe { syscall!(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Duplicates a descriptor to a number above those of the standard streams.
///
/// # Errors
/// If descriptors run out.
pub fn above_streams(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(descriptor, FIRST_OWN.cast_signed())?)
}

/// Stores bytes in a file in memory, and returns it positioned at its begin. A pipe would need a
/// thread to fill it.
///
/// # Errors
/// If memory or descriptors run out, or the limit on the size of files is too low.
pub fn memory_file(name: &str, bytes: &[u8]) -> io::Result<File> {
    crate::file_limit::check(bytes.len() as u64)?;
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Moves standard input to another descriptor, and [empties](empty_stdin) it.
///
/// # Errors
/// If descriptors run out.
pub fn take_stdin() -> io::Result<OwnedFd> {
    let moved = above_streams(io::stdin())?;
    empty_stdin()?;
    Ok(moved)
}

/// Replaces standard input with `/dev/null`, which this process opens itself. Where that is
/// missing, a pipe that nobody writes to is at its end as well.
///
/// # Errors
/// If descriptors run out.
pub fn empty_stdin() -> io::Result<()> {
    let null = match File::open("/dev/null") {
        Ok(null) => null.into(),
        Err(_) => pipe_with(PipeFlags::CLOEXEC)?.0,
    };
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

/// Creates a pipe for a child's output: the reading end never blocks, the writing end does.
///
/// # Errors
/// If descriptors run out.
pub fn output_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// Creates a pipe in which neither end blocks.
///
/// # Errors
/// If descriptors run out.
pub fn nonblocking_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

/// Sets the name of this process in `ps` and `top`, truncated to 15 bytes.
pub fn name_process(name: &str) {
    if let Ok(name) = CString::new(name) {
        // The name is a courtesy; the process works without.
        let _ = rustix::thread::set_name(&name);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read};

    use super::*;

    #[test]
    fn reading_an_empty_output_pipe_does_not_block() -> io::Result<()> {
        let (read, write) = output_pipe()?;
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
    #[test]
    fn a_memory_file_is_read_from_its_begin() -> io::Result<()> {
        let mut text = String::new();
        memory_file("test", b"hello")?.read_to_string(&mut text)?;
        assert_eq!(text, "hello");
        Ok(())
    }
}
