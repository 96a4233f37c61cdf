//! Prints the outputs of jobs: job by job, in the order of the jobs, or line by line, with or
//! without tags.

pub(crate) mod json;
mod reorder;
mod tag;

pub(crate) use reorder::{ReorderBuffer, costs};
pub(crate) use tag::Tag;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

use brigade::runner::{Captured, Outcome, Stream};

use crate::patient::Patient;

/// Prints the outputs of jobs.
#[derive(Debug)]
pub(crate) struct Printer {
    /// `true` for a terminal that also shows our own lines: an output without a newline at its end
    /// gets one, so that they do not share a line.
    pub(crate) ends_lines: bool,
}

impl Printer {
    /// Prints all output of a finished job.
    pub(crate) fn print(&self, outcome: &Outcome, tag: &[u8]) -> io::Result<()> {
        self.copy(&outcome.stdout, tag, io::stdout().lock())?;
        self.print_stderr(outcome, tag)
    }

    /// Prints the standard error of a finished job.
    pub(crate) fn print_stderr(&self, outcome: &Outcome, tag: &[u8]) -> io::Result<()> {
        self.copy(&outcome.stderr, tag, io::stderr().lock())
    }

    /// Prints lines of a running job.
    pub(crate) fn print_lines(&self, stream: Stream, lines: &[u8], tag: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stdout => self.write(io::stdout().lock(), tag, |it| it.write_all(lines)),
            Stream::Stderr => self.write(io::stderr().lock(), tag, |it| it.write_all(lines)),
        }
    }

    fn copy<S>(&self, captured: &Captured, tag: &[u8], stream: S) -> io::Result<()>
    where
        S: Write + AsFd + IsTerminal,
    {
        if captured.is_empty()? {
            return Ok(());
        }
        self.write(stream, tag, |writer| captured.copy_to(writer).map(drop))
    }

    fn write<S: Write + AsFd + IsTerminal>(
        &self,
        stream: S,
        tag: &[u8],
        write: impl FnOnce(&mut Tagged<'_, Patient<S>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let ends_line = self.ends_lines && stream.is_terminal();
        let mut writer = Tagged::new(Patient(stream), tag);
        write(&mut writer)?;
        writer.finish(ends_line)
    }
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

    /// Passes everything on, and ends the last line if `ends_line` is set.
    fn finish(mut self, ends_line: bool) -> io::Result<()> {
        if ends_line && !self.is_line_start {
            self.writer.write_all(b"\n")?;
        }
        self.writer.flush()
    }
}

impl<W: Write> Write for Tagged<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.tag.is_empty() {
            self.writer.write_all(bytes)?;
            self.is_line_start = bytes.last().map_or(self.is_line_start, |byte| *byte == b'\n');
            return Ok(bytes.len());
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
    fn an_unfinished_line_is_ended_if_that_is_wanted() {
        for (text, ends_line, expected) in
            [("a", true, "a\n"), ("a\n", true, "a\n"), ("a", false, "a"), ("", true, "")]
        {
            let mut printed = Vec::new();
            let mut writer = Tagged::new(&mut printed, b"");
            writer.write_all(text.as_bytes()).expect("memory");
            writer.finish(ends_line).expect("memory");
            assert_eq!(printed, expected.as_bytes(), "{text:?}");
        }
    }

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
