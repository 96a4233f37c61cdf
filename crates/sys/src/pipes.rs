//! Writes to the standard input of children without waiting.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with};
use rustix::time::Timespec;

/// The size of an input pipe: fewer switches between the one that writes and the one that reads.
/// It is the most that users without privileges get by default.
const INPUT_BYTES: usize = 1 << 20;

/// Creates a pipe for a child's input, and returns the end to read from and the one to write to.
/// Writing never blocks, reading does.
///
/// # Errors
/// If descriptors run out.
pub fn input_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    // Users have a limit on the memory of all their pipes. Smaller ones work as well.
    let _ = fcntl_setpipe_size(&write, INPUT_BYTES);
    Ok((read, write))
}

/// Moves at most `most` bytes of a file to a pipe, and advances the position. Returns their number,
/// which is 0 at the end of the file.
///
/// Reading the file may block. Block SIGPIPE in this thread if the program does not ignore it.
///
/// # Errors
/// `WouldBlock` if the pipe is full, `BrokenPipe` if nobody can read it any more, `InvalidInput` if
/// the file system cannot do it; otherwise if the file cannot be read.
pub fn splice(
    file: impl AsFd,
    position: &mut u64,
    pipe: impl AsFd,
    most: u64,
) -> io::Result<usize> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    Ok(rustix::pipe::splice(file, Some(position), pipe, None, most, flags)?)
}

/// Writes bytes to a pipe, and returns their number.
///
/// Block SIGPIPE in this thread if the program does not ignore it.
///
/// # Errors
/// `WouldBlock` if the pipe is full, `BrokenPipe` if nobody can read it any more.
pub fn write(pipe: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(retry_on_intr(|| rustix::io::write(&pipe, bytes))?)
}

/// Returns `true` if nobody can read the pipe any more.
pub fn is_closed(pipe: impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(&pipe, PollFlags::empty())];
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}
