//! Handles the events of a run: prints outputs, logs finished jobs, updates the screen.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

use brigade::runner::{self, Captured, Command, Event, Joblog, Outcome, ResultTable, Stopper};
use miette::{IntoDiagnostic, Report, WrapErr};

use super::kept::{Kept, Shared};
use super::status::{BROKEN_PIPE, Decision};
use super::storage;
use crate::arguments::OutputOptions;
use crate::live::LiveView;
use crate::patient::Patient;
use crate::printer::{Printer, ReorderBuffer, json};
use crate::screen::{Screen, Statistics};

/// A last line that is longer loses its start.
const LONGEST_LAST_LINE: usize = 1 << 20;

/// Handles the events of a run, on the output thread.
#[expect(clippy::struct_excessive_bools, reason = "each stands for an option")]
pub(super) struct Session {
    pub(super) screen: Screen,
    pub(super) statistics: Statistics,
    pub(super) live: Option<LiveView>,
    pub(super) joblog: Option<Joblog>,
    pub(super) table: Option<ResultTable>,
    pub(super) report: Option<runner::Report>,
    pub(super) printer: Printer,
    pub(super) is_json: bool,
    pub(super) is_live: bool,
    /// `true` if results are stored in files when their job is over, and not by the job itself.
    pub(super) stores_at_end: bool,
    /// `true` if failed jobs and the end of the run are not reported.
    pub(super) is_quiet: bool,
    pub(super) printed: OutputOptions,
    /// `true` if outputs are stored and not printed.
    pub(super) hides_outputs: bool,
    pub(super) shared: Shared,
    pub(super) stopper: Stopper,
    /// The moment when the halt policy was met.
    pub(super) decision: Option<Decision>,
    /// Our own first failure, which stops the run.
    pub(super) failure: Option<Result<u8, Report>>,
}

/// The data of a session that is needed after its end.
pub(super) struct SessionEnd {
    pub(super) report: Option<runner::Report>,
    pub(super) statistics: Statistics,
    pub(super) decision: Option<Decision>,
    pub(super) failure: Option<Result<u8, Report>>,
}

impl Session {
    /// Handles an event.
    pub(super) fn take(&mut self, event: Event) {
        if let Event::Finished(outcome) = &event
            && outcome.attempts == 0
        {
            // The run ended before the job started: it counts neither as done nor as failed.
            self.shared.take(outcome.number);
            return;
        }
        if let Event::Started { number, slot, .. } = &event {
            self.shared.started(*number, *slot);
        }
        self.note_input();
        self.statistics.note(&event);
        if let Some(live) = &self.live {
            live.note(&event, self.shared.lock().supply.remaining);
        }
        if self.is_json {
            let printed = json::print(&event);
            self.check(printed, "cannot print an event");
        }
        // A reader that has had enough does not want to know about the end of the rest.
        if !self.has_lost_reader() {
            self.screen.show(&event, &self.statistics);
        }
        if let Some(report) = &mut self.report {
            let noted = report.note(&event);
            self.check(noted, "cannot store a job's record for the report");
        }
        match event {
            Event::Output { number, lines, .. } if self.printed.latest_line => {
                self.statistics.note_line(number, last_line(&lines));
            }
            Event::Output { number, stream, lines } => {
                let tag = self.shared.line_tag(number);
                let print = || self.printer.print_lines(stream, &lines, &tag);
                let printed = self.screen.suspend(&self.statistics, print);
                self.check(printed, "cannot print a job's output");
            }
            Event::Finished(outcome) => self.finished(outcome),
            Event::Started { job, slot, attempt: 1, .. } if self.printed.verbose => {
                let line = job.command_on(slot).to_line();
                self.screen.print(&self.statistics, line.as_bytes());
            }
            _ => {}
        }
    }

    fn finished(&mut self, outcome: Outcome) {
        if outcome.is_decisive {
            let (ending, failed) = (outcome.ending.clone(), self.statistics.failed());
            self.decision = Some(Decision { ending, failed });
        }
        let mut shared = self.shared.lock();
        let Some(reorder) = &mut shared.reorder else {
            drop(shared);
            return self.deliver(&outcome);
        };
        let turn = reorder.finished(outcome);
        let has_room = !reorder.is_full();
        let is_held = has_room && std::mem::take(&mut shared.is_held);
        drop(shared);
        for outcome in turn {
            self.deliver(&outcome);
        }
        if is_held {
            self.stopper.wake();
        }
    }

    /// Prints a job's output, and then writes its line to the log: a logged job's output is
    /// complete.
    fn deliver(&mut self, outcome: &Outcome) {
        let kept = self.shared.take(outcome.number);
        let command = self.printed.commands.then(|| outcome.command());
        let has_output = !self.hides_outputs && has_output(outcome);
        let file = self.printed.files.then(|| match &kept.files {
            Some(files) => Ok(files.stdout().to_owned()),
            None => storage::store(&outcome.stdout),
        });
        let file = match file.transpose() {
            Ok(file) => file,
            Err(error) => return self.check(Err(error), "cannot store a job's output"),
        };
        let is_printed = has_output || command.is_some() || file.is_some();
        if !self.is_json && !self.is_live && is_printed {
            let print = || {
                command.map_or(Ok(()), |command| print_command(&command))?;
                let tag = kept.line_tag();
                match &file {
                    Some(file) => {
                        print_line(&[&tag, file.as_os_str().as_bytes()].concat())?;
                        if has_output { self.printer.print_stderr(outcome, &tag) } else { Ok(()) }
                    }
                    None if has_output && self.printed.latest_line => {
                        print_line(&[&tag, last_line_of(outcome)?.as_slice()].concat())
                    }
                    None if has_output => self.printer.print(outcome, &tag),
                    None => Ok(()),
                }
            };
            let printed = self.screen.suspend(&self.statistics, print);
            self.check(printed, "cannot print a job's output");
        }
        let stored = self.store(outcome, &kept);
        let is_stored = stored.is_ok();
        self.check(stored, "cannot store a job's results");
        if !self.has_lost_reader() && !self.is_quiet {
            self.screen.show_failure(outcome, &self.statistics);
        }
        for (captured, name) in [(&outcome.stdout, "output"), (&outcome.stderr, "error output")] {
            if captured.dropped() > 0 {
                let (number, lost) = (outcome.number, captured.dropped());
                let lost = format!(
                    "{lost} bytes of the {name} of job {number} were lost: the directory for temporary files has no room for \
                     them; free some space, or set TMPDIR to another directory"
                );
                self.check(Err(io::Error::other(lost)), "cannot store a job's output");
                // Not logged: a job that is logged as successful does not run again.
                return;
            }
        }
        if let Some(joblog) = self.joblog.as_mut().filter(|_| is_stored) {
            let logged = joblog.write(outcome);
            self.check(logged, "cannot write to the joblog");
        }
    }

    /// Stores a job's results, unless the job has done it itself.
    fn store(&mut self, outcome: &Outcome, kept: &Kept) -> io::Result<()> {
        if let Some(files) = kept.files.as_ref().filter(|_| self.stores_at_end) {
            files.write(outcome)?;
        }
        let Some(table) = &mut self.table else { return Ok(()) };
        // It may be on the terminal.
        self.screen.suspend(&self.statistics, || table.write(outcome, &kept.arguments))
    }

    fn note_input(&mut self) {
        self.statistics.note_supply(self.shared.lock().supply);
    }

    fn has_lost_reader(&self) -> bool {
        matches!(self.failure, Some(Ok(BROKEN_PIPE)))
    }

    /// Stops the run if an operation of our own failed.
    fn check(&mut self, result: io::Result<()>, what: &'static str) {
        let Err(error) = result else { return };
        if self.failure.is_some() {
            return;
        }
        if error.kind() == io::ErrorKind::BrokenPipe {
            // The reader has had enough, and does not need a message.
            self.failure = Some(Ok(BROKEN_PIPE));
            self.stopper.kill();
        } else {
            self.failure = Some(Err(error).into_diagnostic().wrap_err(what));
            self.stopper.stop();
        }
    }

    /// Delivers the jobs that were held back, and shows the summary.
    pub(super) fn close(mut self) -> SessionEnd {
        let rest = self.shared.lock().reorder.as_mut().map(ReorderBuffer::rest);
        for outcome in rest.unwrap_or_default() {
            self.deliver(&outcome);
        }
        self.note_input();
        let is_silent = self.has_lost_reader() || self.is_quiet;
        self.screen.close(&self.statistics, is_silent);
        let Self { report, statistics, decision, failure, .. } = self;
        SessionEnd { report, statistics, decision, failure }
    }
}

/// Returns `true` if a job has printed something, or if that is not known.
fn has_output(outcome: &Outcome) -> bool {
    let is_empty = |captured: &Captured| captured.is_empty().unwrap_or(false);
    !is_empty(&outcome.stdout) || !is_empty(&outcome.stderr)
}

/// Returns the last line of a job's standard output, or of its standard error if there is none.
fn last_line_of(outcome: &Outcome) -> io::Result<Vec<u8>> {
    let stdout = outcome.stdout.tail(LONGEST_LAST_LINE)?;
    let tail = if stdout.is_empty() { outcome.stderr.tail(LONGEST_LAST_LINE)? } else { stdout };
    Ok(last_line(&tail).to_owned())
}

/// Returns the last line, without its end.
fn last_line(text: &[u8]) -> &[u8] {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default()
}

fn print_command(command: &Command) -> io::Result<()> {
    print_line(command.to_line().as_bytes())
}

fn print_line(line: &[u8]) -> io::Result<()> {
    let mut stdout = Patient(io::stdout().lock());
    stdout.write_all(line)?;
    stdout.write_all(b"\n")
}
