//! Prints the outputs of jobs: job by job, in the order of the jobs, or line by line, with or
//! without tags.

pub(crate) mod json;
mod reorder;

pub(crate) use reorder::{ReorderBuffer, costs};

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;

use brigade::runner::{Captured, Outcome, Stream};

/// Prints the outputs of jobs.
#[derive(Debug)]
pub(crate) struct Printer {
    is_tagged: bool,
}

impl Printer {
    pub(crate) fn new(is_tagged: bool) -> Self {
        Self { is_tagged }
    }

    /// Prints all output of a finished job.
    pub(crate) fn print(&self, outcome: &Outcome, arguments: &[OsString]) -> io::Result<()> {
        let tag = self.tag(arguments);
        copy(&outcome.stdout, &tag, io::stdout().lock())?;
        copy(&outcome.stderr, &tag, io::stderr().lock())
    }

    /// Prints lines of a running job.
    pub(crate) fn print_lines(
        &self,
        stream: Stream,
        lines: &[u8],
        arguments: &[OsString],
    ) -> io::Result<()> {
        let tag = self.tag(arguments);
        match stream {
            Stream::Stdout => write_all(Tagged::new(io::stdout().lock(), &tag), lines),
            Stream::Stderr => write_all(Tagged::new(io::stderr().lock(), &tag), lines),
        }
    }

    /// Returns the prefix of each line: the arguments and a tab, as in GNU parallel.
    fn tag(&self, arguments: &[OsString]) -> Vec<u8> {
        if !self.is_tagged {
            return Vec::new();
        }
        let arguments: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
        let mut tag = arguments.join(&b' ');
        tag.push(b'\t');
        tag
    }
}

fn copy(captured: &Captured, tag: &[u8], writer: impl Write) -> io::Result<()> {
    if captured.is_empty()? {
        return Ok(());
    }
    let mut writer = Tagged::new(writer, tag);
    captured.copy_to(&mut writer)?;
    writer.flush()
}

fn write_all(mut writer: impl Write, bytes: &[u8]) -> io::Result<()> {
    writer.write_all(bytes)?;
    writer.flush()
}

/// A writer that puts a tag before each line.
struct Tagged<'a, W: Write> {
    writer: BufWriter<W>,
    tag: &'a [u8],
    is_line_start: bool,
}

impl<'a, W: Write> Tagged<'a, W> {
    fn new(writer: W, tag: &'a [u8]) -> Self {
        Self { writer: BufWriter::new(writer), tag, is_line_start: true }
    }
}

impl<W: Write> Write for Tagged<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tag.is_empty() {
            return self.writer.write(bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_line_start {
                self.writer.write_all(self.tag)?;
            }
            self.writer.write_all(line)?;
            self.is_line_start = line.ends_with(b"\n");
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_starts_with_the_tag_however_it_arrives() {
        let mut printed = Vec::new();
        let mut writer = Tagged::new(&mut printed, b"x\t");
        for piece in ["a", "b\nc", "\n", "\nd"] {
            writer.write_all(piece.as_bytes()).expect("memory");
        }
        drop(writer);
        assert_eq!(printed, b"x\tab\nx\tc\nx\t\nx\td");
    }
}
