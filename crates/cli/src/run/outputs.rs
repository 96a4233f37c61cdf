//! Prints what jobs print: while they run, or when they are over.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use brigade::runner::{Captured, Event, Outcome};

use super::job_data::{JobData, line_tag};
use super::sink::Sink;
use super::storage;
use crate::arguments::{OutputOptions, Run};
use crate::patient::Patient;
use crate::printer::Printer;
use crate::screen::Screen;

/// A last line that is longer loses its start.
const MAX_LAST_LINE: usize = 1 << 20;

/// Prints the outputs of jobs.
pub(super) struct Outputs {
    printer: Printer,
    options: OutputOptions,
    /// `true` if nothing is printed when a job is over.
    is_live: bool,
    /// `true` if outputs are stored and not printed.
    is_hidden: bool,
}

impl Outputs {
    /// `ends_lines` is set for a terminal that also shows our own lines.
    pub(super) fn new(options: &Run, ends_lines: bool) -> Self {
        Self {
            printer: Printer { ends_lines },
            options: options.printed.clone(),
            is_live: options.line_buffer || options.json,
            is_hidden: storage::hides_outputs(options),
        }
    }

    /// Returns the file whose name is printed in place of a job's output.
    fn file(&self, outcome: &Outcome) -> io::Result<Option<PathBuf>> {
        if !self.options.files {
            return Ok(None);
        }
        match JobData::of(outcome).and_then(|data| data.files.as_ref()) {
            Some(files) => Ok(Some(files.stdout().to_owned())),
            None => storage::store(&outcome.stdout).map(Some).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot store a job's output: {error}"))
            }),
        }
    }

    fn print(&self, outcome: &Outcome, file: Option<PathBuf>, has_output: bool) -> io::Result<()> {
        if self.options.commands {
            print_line(outcome.command().to_line().as_bytes())?;
        }
        let tag = line_tag(&outcome.job, outcome.slot);
        match file {
            Some(file) => {
                print_line(&[&tag, file.as_os_str().as_bytes()].concat())?;
                if has_output { self.printer.print_stderr(outcome, &tag) } else { Ok(()) }
            }
            None if has_output && self.options.latest_line => {
                print_line(&[&tag, last_line_of(outcome)?.as_slice()].concat())
            }
            None if has_output => self.printer.print(outcome, &tag),
            None => Ok(()),
        }
    }
}

impl Sink for Outputs {
    fn event(&mut self, event: &Event, screen: &mut Screen) -> io::Result<()> {
        match event {
            Event::Output { number, lines, .. } if self.options.latest_line => {
                screen.statistics.note_line(*number, last_line(lines));
            }
            Event::Output { job, slot, stream, lines, .. } => {
                let tag = line_tag(job, *slot);
                return screen.suspend(|| self.printer.print_lines(*stream, lines, &tag));
            }
            Event::Started { job, slot, attempt: 1, .. } if self.options.verbose => {
                let line = job.command_on(*slot).to_line();
                screen.print(line.as_bytes());
            }
            _ => {}
        }
        Ok(())
    }

    fn outcome(&mut self, outcome: &Outcome, screen: &mut Screen) -> io::Result<()> {
        let has_output = !self.is_hidden && has_output(outcome);
        let file = self.file(outcome)?;
        let is_printed = has_output || self.options.commands || file.is_some();
        if self.is_live || !is_printed {
            return Ok(());
        }
        screen.suspend(|| self.print(outcome, file, has_output))
    }
}

/// Returns `true` if a job has printed something, or if that is not known.
fn has_output(outcome: &Outcome) -> bool {
    let is_empty = |captured: &Captured| captured.is_empty().unwrap_or(false);
    !is_empty(&outcome.stdout) || !is_empty(&outcome.stderr)
}

/// Returns the last line of a job's standard output, or of its standard error if there is none.
fn last_line_of(outcome: &Outcome) -> io::Result<Vec<u8>> {
    let stdout = outcome.stdout.tail(MAX_LAST_LINE)?;
    let tail = if stdout.is_empty() { outcome.stderr.tail(MAX_LAST_LINE)? } else { stdout };
    Ok(last_line(&tail).to_owned())
}

/// Returns the last line, without its end.
fn last_line(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn print_line(line: &[u8]) -> io::Result<()> {
    let mut stdout = Patient(io::stdout().lock());
    stdout.write_all(line)?;
    stdout.write_all(b"\n")
}
