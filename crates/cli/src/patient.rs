//! Standard streams that block, even if they are set not to.
//!
//! A pipe or terminal blocks or not for all processes that share it, and some of those that start
//! us or run beside us change that for themselves. The error of a read or write that would block
//! must not cost a run its input or output.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::descriptors::lacks_stdout;

/// A stream that waits when a read or write would block.
#[derive(Debug)]
pub(crate) struct Patient<S>(pub(crate) S);

impl Patient<File> {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(path: &OsStr) -> io::Result<Self> {
        let file = if path == "-" {
            io::stdin().as_fd().try_clone_to_owned()?.into()
        } else {
            File::open(path)?
        };
        Ok(Self(file))
    }

    /// Returns `true` if it can be read twice.
    pub(crate) fn is_regular(&self) -> bool {
        self.0.metadata().is_ok_and(|metadata| metadata.is_file())
    }
}

impl<S: AsFd> Patient<S> {
    /// Calls `operation` until it does not fail because it would block. Waits in between, for as
    /// long as a stream that blocks does.
    fn retry<T>(
        &mut self,
        events: PollFlags,
        mut operation: impl FnMut(&mut S) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match operation(&mut self.0) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
            match poll(&mut [PollFd::new(&self.0, events)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl<S: Read + AsFd> Read for Patient<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.retry(PollFlags::IN, |stream| stream.read(buffer))
    }
}

impl<S: Write + AsFd> Write for Patient<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.as_fd().as_raw_fd() == 1 && lacks_stdout() {
            return Err(Errno::BADF.into());
        }
        self.retry(PollFlags::OUT, |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.retry(PollFlags::OUT, Write::flush)
    }
}
