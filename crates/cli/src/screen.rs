//! Shows progress and the final summary on standard error; standard output belongs to the jobs.
//!
//! On a terminal, an area shows a bar and the running jobs; elsewhere, if requested, a line is
//! printed now and then. Each failure is printed in any case. Colors are used only on a terminal,
//! and not if `NO_COLOR` is set.

mod area;
mod hosts;
mod lines;
mod plain;
mod statistics;
mod summary;
mod text;

pub(crate) use statistics::{Statistics, SupplyCounts};

use std::io::{self, Write};
use std::time::Duration;

use brigade::runner::{Event, Need, Outcome, Reason};

use crate::log;
use crate::patient::Patient;
use area::Area;
use plain::Plain;
use text::{Tint, waiting_for};
pub(crate) use text::{name_of, one_line};

/// Shows progress, failures and the summary.
#[derive(Debug)]
pub(crate) struct Screen {
    pub(crate) statistics: Statistics,
    view: View,
    tint: Tint,
    /// The needs that a line was printed about.
    needs: Vec<Need>,
}

/// The form in which progress is shown.
#[derive(Debug)]
pub(crate) enum View {
    /// Only failures.
    Quiet,
    /// A progress line now and then.
    Plain(Plain),
    /// A progress area on a terminal.
    Area(Area),
}

/// A run on a terminal that takes no longer, without a failure, gets no summary.
const SHORT_RUN: Duration = Duration::from_secs(1);
/// The interval at which the area updates elapsed times; all else is drawn when it happens.
const TICK: Duration = Duration::from_millis(250);

impl View {
    /// Chooses a view by the terminal. `wanted` is the user's choice about progress, if any.
    pub(crate) fn new(wanted: Option<bool>) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let is_terminal = !is_dumb && console::Term::stderr().is_term();
        match (wanted, is_terminal) {
            (Some(false), _) | (None, false) => Self::Quiet,
            (Some(true), false) => Self::Plain(Plain::default()),
            (_, true) => {
                log::hold();
                Self::Area(Area::new(Tint::for_stderr()))
            }
        }
    }

    /// Returns the interval at which it wants tick events.
    pub(crate) fn tick(&self) -> Option<Duration> {
        self.has_area().then_some(TICK)
    }

    /// Returns `true` if there is an area on the terminal.
    pub(crate) fn has_area(&self) -> bool {
        matches!(self, Self::Area(_))
    }
}

impl Screen {
    pub(crate) fn new(view: View, statistics: Statistics) -> Self {
        Self { statistics, view, tint: Tint::for_stderr(), needs: Vec::new() }
    }

    /// Calls `print` with the area hidden.
    pub(crate) fn suspend<T>(&mut self, print: impl FnOnce() -> T) -> T {
        match &mut self.view {
            View::Area(area) => area.suspend(&self.statistics, print),
            View::Quiet | View::Plain(_) => print(),
        }
    }

    /// Shows an event, which the statistics must already include.
    pub(crate) fn show(&mut self, event: &Event) {
        let reports = log::take();
        if !reports.is_empty() {
            self.suspend(|| log::print(&reports));
        }
        match &mut self.view {
            View::Area(area) if matches!(event, Event::Suspended) => area.clear(),
            View::Area(area) => area.show(&self.statistics),
            View::Plain(plain) if matches!(event, Event::Finished(_)) => {
                if let Some(line) = plain.line(&self.statistics) {
                    self.print_line(&line);
                }
            }
            _ => {}
        }
        if let Event::Waiting { need } = event {
            if self.needs.contains(need) {
                return;
            }
            self.needs.push(*need);
        }
        let line = self.statistics.is_remote.then(|| remote_message(event)).flatten();
        if let Some(line) = line.or_else(|| message(event)) {
            self.print_line(&line);
        }
    }

    /// Prints a line about a failed job. Call this after its output was printed.
    pub(crate) fn show_failure(&mut self, outcome: &Outcome) {
        if outcome.ending.is_success() {
            return;
        }
        let job = name_of(&outcome.job, || outcome.command());
        let what = self.tint.bad(&format!("job {} failed", outcome.number));
        let line = format!("{what} ({}): {}", outcome.ending, one_line(&job));
        self.print_line(&line);
    }

    /// Prints a line of our own.
    fn print_line(&mut self, line: &str) {
        self.suspend(|| announce(line));
    }

    /// Prints a line as it is.
    pub(crate) fn print(&mut self, line: &[u8]) {
        self.suspend(|| {
            let _ = Patient(io::stderr()).write_all(&[line, b"\n"].concat());
        });
    }

    /// Removes the area, and prints the summary of the run, if `is_silent` is not set.
    pub(crate) fn close(&mut self, is_silent: bool) {
        if let View::Area(area) = &mut self.view {
            area.clear();
        }
        log::release();
        let statistics = &self.statistics;
        let wall = statistics.elapsed();
        // Two lines of output need no summary of five.
        let is_worth_it =
            !self.view.has_area() || wall > SHORT_RUN || statistics.supply.skipped > 0;
        // The summary of a run whose progress is shown is printed even if nothing failed.
        let is_watched = !matches!(self.view, View::Quiet);
        if !is_silent && (is_watched && is_worth_it || statistics.failed > 0) {
            let text = summary::text(statistics, wall, is_watched, self.tint);
            let _ = Patient(io::stderr()).write_all(text.as_bytes());
        }
    }
}

/// Prints a line of our own while no screen shows anything.
pub(crate) fn announce(line: &str) {
    // Without a standard error nobody can see it.
    let _ = Patient(io::stderr()).write_all(format!("brigade: {line}\n").as_bytes());
}

/// Returns the text about an event that means something else on a cluster.
fn remote_message(event: &Event) -> Option<String> {
    Some(match event {
        Event::Halting(Reason::Stopped) => {
            "stopping: jobs that have not begun are cancelled; press Ctrl-C again to kill the others"
                .to_owned()
        }
        Event::Grace { running, left } => {
            format!("{running} not over; killing them in {} s", left.as_secs_f64().round())
        }
        Event::Signalled { running, .. } => format!("{running} not over; killing them"),
        _ => return None,
    })
}

fn message(event: &Event) -> Option<String> {
    Some(match event {
        Event::Retrying(outcome) => format!(
            "job {} failed ({}) on attempt {}; retrying",
            outcome.number, outcome.ending, outcome.attempts
        ),
        Event::Halting(Reason::Stopped) => {
            "stopping: interrupting all jobs; press Ctrl-C again to kill them".to_owned()
        }
        Event::Halting(Reason::Halted) => {
            "halting: the --halt policy was met; no more jobs will start".to_owned()
        }
        Event::Grace { running, left } => {
            format!("{running} still running; sending SIGTERM in {} s", left.as_secs_f64().round())
        }
        Event::Signalled { running, signal } => {
            format!("{running} still running; sending {signal}")
        }
        Event::WantsTerminal { number, pid } => format!(
            "job {number} (process {pid}) is stopped because it wants to use the terminal, which jobs cannot; \
             kill it, or stop the run"
        ),
        Event::Waiting { need } => waiting_for(*need).to_owned(),
        Event::Stray { pid, name, number, is_gone } => {
            let whose =
                number.map_or_else(|| "its job".to_owned(), |number| format!("job {number}"));
            let what = if *is_gone { "it was killed" } else { "it cannot be killed" };
            format!(
                "process {pid} ({name}) left the process group of {whose} and outlived the job; {what}"
            )
        }
        _ => return None,
    })
}
