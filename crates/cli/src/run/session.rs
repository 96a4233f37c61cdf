//! What happens to what happens: outputs are printed, finished jobs are logged, the screen shows both.

use std::io;

use brigade::runner::{Ending, Event, Outcome, Reason, Stopper};
use miette::{IntoDiagnostic, Report, WrapErr};

use super::feed::Shared;
use super::status::BROKEN_PIPE;
use crate::joblog::JobLog;
use crate::printer::{Order, Printer, json};
use crate::record::{Record, Records};
use crate::results::Results;
use crate::screen::{Screen, Statistics};

/// Takes the events of a run.
pub(super) struct Session {
    pub(super) screen: Screen,
    pub(super) statistics: Statistics,
    pub(super) joblog: Option<JobLog>,
    pub(super) results: Option<Results>,
    pub(super) records: Option<Records>,
    pub(super) printer: Printer,
    pub(super) is_json: bool,
    pub(super) is_live: bool,
    pub(super) shared: Shared,
    pub(super) stopper: Stopper,
    /// How the job ended that ended last.
    pub(super) last: Option<Ending>,
    /// How the job ended that met the halt policy.
    pub(super) decisive: Option<Ending>,
    /// The first thing of ours that went wrong, which stops the run.
    pub(super) trouble: Option<Result<u8, Report>>,
}

/// What is left when the run is over.
pub(super) struct Closing {
    pub(super) records: Option<Records>,
    pub(super) statistics: Statistics,
    pub(super) decisive: Option<Ending>,
    pub(super) trouble: Option<Result<u8, Report>>,
}

impl Session {
    /// Something has happened.
    pub(super) fn take(&mut self, event: Event<'_>) {
        if let Event::Finished(outcome) = &event
            && outcome.attempts == 0
        {
            // The run ended before it began: it is neither done nor failed.
            self.shared.take_arguments(outcome.number);
            return;
        }
        self.note_input();
        self.statistics.note(&event);
        if self.is_json {
            let printed = json::print(&event);
            self.check(printed, "cannot print an event");
        }
        self.screen.show(&event, &self.statistics);
        match event {
            Event::Output { number, stream, lines } => {
                let arguments = self.shared.arguments(number);
                let print = || self.printer.print_lines(stream, lines, &arguments);
                let printed = self.screen.aside(print);
                self.check(printed, "cannot print what a job has printed");
            }
            Event::Finished(outcome) => self.finished(outcome),
            Event::Halting(Reason::Halted) => self.decisive = self.last.take(),
            _ => {}
        }
    }

    fn finished(&mut self, outcome: Outcome) {
        self.last = Some(outcome.ending.clone());
        if let Some(records) = &mut self.records {
            let kept = records.push(&Record::of(&outcome));
            self.check(kept, "cannot keep what the report needs");
        }
        let mut shared = self.shared.lock();
        let Some(order) = &mut shared.order else {
            drop(shared);
            return self.deliver(&outcome);
        };
        let turn = order.finished(outcome);
        let has_room = !order.is_full();
        let is_held = has_room && std::mem::take(&mut shared.is_held);
        drop(shared);
        for outcome in turn {
            self.deliver(&outcome);
        }
        if is_held {
            self.stopper.wake();
        }
    }

    /// Gives a job out: what it printed first, then its line in the log. Whoever finds the line finds the output.
    fn deliver(&mut self, outcome: &Outcome) {
        let arguments = self.shared.take_arguments(outcome.number);
        if !self.is_json && !self.is_live {
            let printed = self.screen.aside(|| self.printer.print(outcome, &arguments));
            self.check(printed, "cannot print what a job has printed");
        }
        if let Some(results) = self.results.as_ref().filter(|_| self.is_live) {
            let written = results.write(outcome, &arguments);
            self.check(written, "cannot write to the folder of results");
        }
        for (captured, name) in [(&outcome.stdout, "output"), (&outcome.stderr, "error output")] {
            if captured.dropped() > 0 {
                let (number, lost) = (outcome.number, captured.dropped());
                let lost = format!(
                    "{lost} bytes of the {name} of job {number} are lost: there is no room for them in the folder for \
                     temporary files; make room, or set TMPDIR to another one"
                );
                self.check(Err(io::Error::other(lost)), "cannot keep what a job has printed");
                // Not logged: what is logged as a success is not run again.
                return;
            }
        }
        if let Some(joblog) = &mut self.joblog {
            let received = outcome.stdout.len().unwrap_or(0);
            let logged = joblog.write(outcome, received);
            self.check(logged, "cannot write to the joblog");
        }
    }

    fn note_input(&mut self) {
        let shared = self.shared.lock();
        self.statistics.note_input(shared.remaining, shared.skipped);
    }

    /// Stops the run if something of ours has failed.
    fn check(&mut self, result: io::Result<()>, what: &'static str) {
        let Err(error) = result else { return };
        if self.trouble.is_some() {
            return;
        }
        if error.kind() == io::ErrorKind::BrokenPipe {
            // Whoever reads has had enough, and needs not be told so.
            self.trouble = Some(Ok(BROKEN_PIPE));
            self.stopper.kill();
        } else {
            self.trouble = Some(Err(error).into_diagnostic().wrap_err(what));
            self.stopper.stop();
        }
    }

    /// Gives out what is left, and shows what came of the run.
    pub(super) fn close(mut self) -> Closing {
        let rest = self.shared.lock().order.as_mut().map(Order::rest);
        for outcome in rest.unwrap_or_default() {
            self.deliver(&outcome);
        }
        self.note_input();
        self.screen.close(&self.statistics);
        let Self { records, statistics, decisive, trouble, .. } = self;
        Closing { records, statistics, decisive, trouble }
    }
}
