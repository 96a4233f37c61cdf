//! Captures the output of processes in bounded memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;

/// Maximum number of bytes of a stream kept in memory; a longer one moves to a file.
pub const MAX_IN_MEMORY: usize = 256 * 1024;

/// The captured output of one stream of a process.
#[derive(Debug, Default)]
pub struct Captured {
    kept: Kept,
    /// Number of bytes that arrived but were not kept.
    dropped: u64,
}

/// The output of one stream while it arrives.
#[derive(Debug, Default)]
pub struct Capture(Captured);

/// Creates an unnamed file for output that outgrows memory.
pub type Spill = fn() -> io::Result<File>;

#[derive(Debug)]
enum Kept {
    Tail {
        bytes: VecDeque<u8>,
        limit: usize,
    },
    Memory {
        bytes: Vec<u8>,
        spill: Spill,
    },
    /// An unnamed file, or one that the process wrote itself.
    File(File),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Tail { bytes: VecDeque::new(), limit: 0 }
    }
}

impl Captured {
    /// Returns the number of bytes that were printed but not kept, because the tail or the disk had
    /// no room for them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns `true` if no bytes were kept.
    ///
    /// # Errors
    /// Returns an error if the length of the file cannot be read.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Returns the number of bytes that were kept.
    ///
    /// # Errors
    /// Returns an error if the length of the file cannot be read.
    pub fn len(&self) -> io::Result<u64> {
        Ok(match &self.kept {
            Kept::Tail { bytes, .. } => bytes.len() as u64,
            Kept::Memory { bytes, .. } => bytes.len() as u64,
            Kept::File(file) => file.metadata()?.len(),
        })
    }

    /// Returns the number of bytes held in memory, and `true` if a file descriptor is held.
    pub fn costs(&self) -> (usize, bool) {
        match &self.kept {
            Kept::Tail { bytes, .. } => (bytes.capacity(), false),
            Kept::Memory { bytes, .. } => (bytes.capacity(), false),
            Kept::File(_) => (0, true),
        }
    }

    /// Returns the last bytes, at most `limit`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn tail(&self, limit: usize) -> io::Result<Vec<u8>> {
        Ok(match &self.kept {
            Kept::Tail { bytes, .. } => {
                bytes.iter().skip(bytes.len().saturating_sub(limit)).copied().collect()
            }
            Kept::Memory { bytes, .. } => bytes[bytes.len().saturating_sub(limit)..].to_vec(),
            Kept::File(file) => {
                let mut bytes = Vec::new();
                Contents::last(file, limit as u64)?.read_to_end(&mut bytes)?;
                bytes
            }
        })
    }

    /// Writes all bytes that were kept, and returns their number.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or the writer fails.
    pub fn copy_to(&self, writer: &mut impl Write) -> io::Result<u64> {
        match &self.kept {
            Kept::Tail { bytes, .. } => {
                let (front, back) = bytes.as_slices();
                writer.write_all(front)?;
                writer.write_all(back)?;
                Ok(bytes.len() as u64)
            }
            Kept::Memory { bytes, .. } => writer.write_all(bytes).map(|()| bytes.len() as u64),
            Kept::File(file) => io::copy(&mut Contents::last(file, u64::MAX)?, writer),
        }
    }
}

impl Capture {
    /// Keeps the last bytes, at most `limit`.
    pub fn tail_of(limit: usize) -> Self {
        Self::new(Kept::Tail { bytes: VecDeque::new(), limit })
    }

    /// Keeps everything, more than [`MAX_IN_MEMORY`] bytes in a file.
    pub fn whole(spill: Spill) -> Self {
        Self::new(Kept::Memory { bytes: Vec::new(), spill })
    }

    /// Refers to the file that the process writes itself.
    pub fn file(file: File) -> Self {
        Self::new(Kept::File(file))
    }

    fn new(kept: Kept) -> Self {
        Self(Captured { kept, dropped: 0 })
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, more: &[u8]) {
        let Captured { kept, dropped } = &mut self.0;
        match kept {
            Kept::Tail { bytes, limit } => {
                let more_kept = &more[more.len().saturating_sub(*limit)..];
                let excess = (bytes.len() + more_kept.len()).saturating_sub(*limit);
                bytes.drain(..excess);
                bytes.extend(more_kept);
                *dropped += (excess + more.len() - more_kept.len()) as u64;
            }
            Kept::Memory { bytes, .. } if bytes.len() + more.len() <= MAX_IN_MEMORY => {
                bytes.extend_from_slice(more);
            }
            Kept::Memory { bytes, spill } => match move_to(*spill, bytes, more) {
                Ok(file) => *kept = Kept::File(file),
                // No disk to spill to: these bytes are lost, and counted.
                Err(_) => *dropped += more.len() as u64,
            },
            Kept::File(file) => {
                if file.write_all(more).is_err() {
                    *dropped += more.len() as u64;
                }
            }
        }
    }

    /// Returns the output so far.
    pub fn captured(&self) -> &Captured {
        &self.0
    }

    /// Ends the capture.
    pub fn finish(self) -> Captured {
        self.0
    }
}

/// The contents of a file at one moment.
///
/// A process that has outlived its job may still write to the file. So reading does not move the
/// file's position, which the writer shares, and stops where the file ended when the reading began.
struct Contents<'a> {
    file: &'a File,
    position: u64,
    end: u64,
}

impl<'a> Contents<'a> {
    fn last(file: &'a File, limit: u64) -> io::Result<Self> {
        let end = file.metadata()?.len();
        Ok(Self { file, position: end.saturating_sub(limit), end })
    }
}

impl Read for Contents<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.position).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let count = self.file.read_at(&mut buffer[..room], self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

fn move_to(spill: Spill, bytes: &[u8], more: &[u8]) -> io::Result<File> {
    let mut file = spill()?;
    file.write_all(bytes)?;
    file.write_all(more)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_tail_is_the_end_of_the_output(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..10),
            limit in 0_usize..40,
        ) {
            let mut tail = Capture::tail_of(limit);
            let mut whole = Capture::whole(tempfile::tempfile);
            for piece in &pieces {
                tail.push(piece);
                whole.push(piece);
            }
            let (tail, whole) = (tail.finish(), whole.finish());
            let all = pieces.concat();
            let end = &all[all.len().saturating_sub(limit)..];
            prop_assert_eq!(tail.tail(limit).expect("memory"), end);
            prop_assert_eq!(whole.tail(limit).expect("memory"), end);
            prop_assert_eq!(tail.dropped(), (all.len() - end.len()) as u64);
        }
    }

    #[test]
    fn a_file_is_read_without_disturbing_or_following_its_writer() -> io::Result<()> {
        struct Appends<'a>(&'a File, usize);
        impl Write for Appends<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.1 += bytes.len();
                assert!(self.1 < 100, "the reader follows the writer");
                self.0.write_all(bytes)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut file = tempfile::tempfile()?;
        file.write_all(b"0123456789")?;
        let captured = Capture::file(file.try_clone()?).finish();
        assert_eq!(captured.tail(3)?, b"789");
        assert_eq!(captured.copy_to(&mut Appends(&file, 0))?, 10);
        assert_eq!(captured.tail(usize::MAX)?, b"01234567890123456789");
        Ok(())
    }

    #[test]
    fn output_that_outgrows_memory_continues_in_a_file() -> io::Result<()> {
        let mut capture = Capture::whole(tempfile::tempfile);
        let piece: Vec<u8> = (0..=u8::MAX).cycle().take(MAX_IN_MEMORY / 2 + 1).collect();
        for _ in 0..3 {
            capture.push(&piece);
        }
        let captured = capture.finish();
        assert!(matches!(captured.kept, Kept::File(_)));
        let mut all = Vec::new();
        captured.copy_to(&mut all)?;
        assert_eq!(all, piece.repeat(3));
        assert_eq!(captured.tail(3)?, piece[piece.len() - 3..]);
        Ok(())
    }
}
