//! What happens to what happens: outputs are printed, finished jobs are logged, the screen shows both.

use std::io;

use brigade::runner::{Ending, Event, Outcome, Stopper};
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
    /// The first thing of ours that went wrong, which stops the run.
    pub(super) trouble: Option<Result<u8, Report>>,
}

/// What is left when the run is over.
pub(super) struct Closing {
    pub(super) records: Option<Records>,
    pub(super) statistics: Statistics,
    pub(super) last: Option<Ending>,
    pub(super) trouble: Option<Result<u8, Report>>,
}

impl Session {
    /// Something has happened.
    pub(super) fn take(&mut self, event: Event<'_>) {
        self.statistics.note_input(self.shared.remaining.get(), self.shared.skipped.get());
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
            _ => {}
        }
    }

    fn finished(&mut self, outcome: Outcome) {
        self.last = Some(outcome.ending.clone());
        if let Some(records) = &mut self.records {
            let kept = records.push(&Record::of(&outcome));
            self.check(kept, "cannot keep what the report needs");
        }
        let ordered = self.shared.order.borrow_mut().as_mut().map(|order| order.is_full());
        let Some(was_full) = ordered else { return self.deliver(&outcome) };
        let turn = self.shared.order.borrow_mut().as_mut().map(|order| order.finished(outcome));
        for outcome in turn.unwrap_or_default() {
            self.deliver(&outcome);
        }
        if was_full && self.shared.is_held.take() {
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
                self.screen.say(&format!(
                    "job {number}: {lost} bytes of its {name} are lost, as the disk is full"
                ));
            }
        }
        if let Some(joblog) = &mut self.joblog {
            let received = outcome.stdout.len().unwrap_or(0);
            let logged = joblog.write(outcome, received);
            self.check(logged, "cannot write to the joblog");
        }
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
        let rest = self.shared.order.borrow_mut().as_mut().map(Order::rest);
        for outcome in rest.unwrap_or_default() {
            self.deliver(&outcome);
        }
        self.statistics.note_input(self.shared.remaining.get(), self.shared.skipped.get());
        self.screen.close(&self.statistics);
        let Self { records, statistics, last, trouble, .. } = self;
        Closing { records, statistics, last, trouble }
    }
}
