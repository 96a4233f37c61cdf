//! The pipe through which a process prints.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;

use brigade_sys::descriptors;

/// Our end of the pipe through which a process prints. Reading never waits.
#[derive(Debug)]
pub struct OutputPipe(File);

/// Maximum number of bytes read from the pipe of a process that has ended: the largest default
/// capacity of a pipe. A process that it has left behind may write forever.
pub const MAX_REST: usize = 1 << 20;

impl OutputPipe {
    /// Creates a pipe, and returns the end of the process as well.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = descriptors::output_pipe()?;
        Ok((Self(ours.into()), theirs))
    }

    /// Creates a pipe in which neither end waits.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn open_events() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = descriptors::nonblocking_pipe()?;
        Ok((Self(ours.into()), theirs))
    }

    /// Passes the bytes that have arrived to `take`, until it got at least `limit` of them. Returns
    /// `true` at the end: if the process and all that have inherited the pipe have closed it.
    ///
    /// # Errors
    /// If the pipe cannot be read.
    pub fn read(
        &self,
        limit: usize,
        buffer: &mut [u8],
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<bool> {
        let mut total = 0;
        while total < limit {
            match (&self.0).read(buffer) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    total += count;
                    take(&buffer[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

brigade_sys::as_fd!(OutputPipe, 0);

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_read_ends_at_the_limit_when_nothing_is_left_and_at_the_end() -> io::Result<()> {
        let (pipe, theirs) = OutputPipe::open()?;
        let mut theirs = File::from(theirs);
        let read = |limit| {
            let mut bytes = Vec::new();
            let is_end = pipe.read(limit, &mut [0; 2], |piece| bytes.extend_from_slice(piece))?;
            io::Result::Ok((String::from_utf8_lossy(&bytes).into_owned(), is_end))
        };
        theirs.write_all(b"12345")?;
        assert_eq!(read(1)?, ("12".to_owned(), false));
        assert_eq!(read(9)?, ("345".to_owned(), false));
        theirs.write_all(b"6")?;
        drop(theirs);
        assert_eq!(read(1)?, ("6".to_owned(), false));
        assert_eq!(read(1)?, (String::new(), true));
        Ok(())
    }
}
