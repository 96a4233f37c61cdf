//! The destinations of a run's events: the terminal, standard output, files, a live view.

use std::io;

use brigade::runner::{self, Event, Outcome};
use miette::Report;

use crate::live::LiveView;
use crate::printer::json;
use crate::report::{Files, this_run};
use crate::screen::{Screen, Statistics};

/// A destination of a run's events. All methods run on the output thread and may block.
pub(super) trait Sink: Send {
    /// Handles an event when it happens.
    fn event(&mut self, _: &Event, _: &mut Screen) -> io::Result<()> {
        Ok(())
    }

    /// Handles the outcome of a job when it is its turn: by default when the job is over, and with
    /// `--keep-order` in the order of the jobs.
    fn outcome(&mut self, _: &Outcome, _: &mut Screen) -> io::Result<()> {
        Ok(())
    }

    /// Handles the end of the run, with its exit status.
    fn end(&mut self, _: &Statistics, _: u8) -> Result<(), Report> {
        Ok(())
    }
}

/// Sinks in the order in which they get each event, and what each does, for "cannot …" when it
/// fails.
pub(super) type Sinks = Vec<(&'static str, Box<dyn Sink>)>;

/// Prints events as lines of JSON.
pub(super) struct JsonLines;

impl Sink for JsonLines {
    fn event(&mut self, event: &Event, _: &mut Screen) -> io::Result<()> {
        json::print(event)
    }

    fn end(&mut self, statistics: &Statistics, status: u8) -> Result<(), Report> {
        // The reader may be gone.
        let _ = json::print_end(statistics, status);
        Ok(())
    }
}

impl Sink for LiveView {
    fn event(&mut self, event: &Event, screen: &mut Screen) -> io::Result<()> {
        self.note(event, screen.statistics.supply.ahead.total());
        Ok(())
    }
}

/// Records jobs for a report or a trace, which are written at the end.
pub(super) struct ReportSink {
    pub(super) report: runner::Report,
    pub(super) files: Files,
}

impl Sink for ReportSink {
    fn event(&mut self, event: &Event, _: &mut Screen) -> io::Result<()> {
        self.report.note(event)
    }

    fn end(&mut self, statistics: &Statistics, status: u8) -> Result<(), Report> {
        self.files.write(&mut self.report, &this_run(statistics, status))
    }
}
