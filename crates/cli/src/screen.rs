//! What people look at while jobs run, and when they are over. All of it goes to standard error; standard output belongs
//! to the jobs.
//!
//! On a terminal there is an area of a bar and the jobs that run; elsewhere, if asked for, a line now and then; in any
//! case a line for each failure. Colours only on a terminal, and not if `NO_COLOR` is set.

mod area;
mod plain;
mod statistics;
mod summary;
mod terminal;
mod text;

pub(crate) use statistics::Statistics;

use std::io::{self, Write};
use std::time::Duration;

use brigade::runner::{Event, Reason};

use area::Area;
use plain::Plain;
use text::{Tint, seconds};

/// What people look at.
#[derive(Debug)]
pub(crate) struct Screen {
    view: View,
    tint: Tint,
}

#[derive(Debug)]
enum View {
    /// Nothing but failures.
    Quiet,
    /// A line now and then.
    Plain(Plain),
    /// An area of a terminal.
    Area(Box<Area>),
}

/// How often an area shows that time goes by.
const TICK: Duration = Duration::from_millis(250);

impl Screen {
    /// What the options and the terminal allow. `wanted` is what the user said about progress, if anything.
    pub(crate) fn new(wanted: Option<bool>) -> Self {
        let is_terminal = console::Term::stderr().is_term();
        let view = match (wanted, is_terminal) {
            (Some(false), _) | (None, false) => View::Quiet,
            (Some(true), false) => View::Plain(Plain::default()),
            (_, true) => View::Area(Box::new(Area::new())),
        };
        Self { view, tint: Tint::for_stderr() }
    }

    /// How often it wants to be told that time goes by.
    pub(crate) fn tick(&self) -> Option<Duration> {
        matches!(self.view, View::Area(_)).then_some(TICK)
    }

    /// Whether somebody watches, who wants a summary even if nothing failed.
    pub(crate) fn is_watched(&self) -> bool {
        !matches!(self.view, View::Quiet)
    }

    /// Prints with the area out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.view {
            View::Area(area) => area.aside(print),
            View::Quiet | View::Plain(_) => print(),
        }
    }

    /// Something has happened; `statistics` know of it already.
    pub(crate) fn show(&mut self, event: &Event<'_>, statistics: &Statistics) {
        match &mut self.view {
            View::Area(area) if matches!(event, Event::Tick) => area.draw(statistics),
            View::Plain(plain) if matches!(event, Event::Finished(_)) => {
                if let Some(line) = plain.line(statistics) {
                    self.say(&line);
                }
            }
            _ => {}
        }
        if let Some(line) = self.words(event) {
            self.say(&line);
        }
    }

    /// A line of ours.
    pub(crate) fn say(&self, line: &str) {
        // Without a standard error there is nobody to tell.
        self.aside(|| {
            let _ = writeln!(io::stderr(), "brigade: {line}");
        });
    }

    /// Clears the area, and shows what came of the run.
    pub(crate) fn close(&mut self, statistics: &Statistics) {
        if let View::Area(area) = &mut self.view {
            area.clear();
        }
        let wall = statistics.elapsed();
        let is_watched = self.is_watched();
        if is_watched || statistics.failed() > 0 {
            let text = summary::text(statistics, wall, is_watched, self.tint);
            let _ = io::stderr().write_all(text.as_bytes());
        }
    }

    fn words(&self, event: &Event<'_>) -> Option<String> {
        Some(match event {
            Event::Finished(outcome) if !outcome.ending.is_success() => {
                let job = outcome
                    .job
                    .label_text()
                    .map_or_else(|| crate::joblog::command(outcome), str::to_owned);
                let what = self.tint.bad(&format!("job {} failed", outcome.number));
                format!("{what} ({}): {}", outcome.ending, text::one_line(&job))
            }
            Event::Retrying { number, attempt, ending, .. } => {
                format!("job {number} failed ({ending}) in attempt {attempt}; it gets another")
            }
            Event::Halting(Reason::Stopped) => {
                "stopping: jobs are interrupted; once more (Ctrl-C) kills them at once".to_owned()
            }
            Event::Halting(Reason::Halted) => {
                "halting: the policy is met, no more jobs are started".to_owned()
            }
            Event::Grace { running, left } => format!(
                "{running} still running; they have {} s left to end by themselves",
                left.as_secs_f64().round()
            ),
            Event::Signalled { running, signal } => format!("{signal} to {running} still running"),
            Event::Stray { pid, name, number, is_gone } => {
                let whose = number.map_or_else(String::new, |number| format!(" of job {number}"));
                let what = if *is_gone { "was killed" } else { "cannot be killed" };
                format!(
                    "process {pid} ({name}){whose} had left its job and outlived it, and {what}"
                )
            }
            _ => return None,
        })
    }
}

/// A duration for the summary and the area.
fn short(duration: Duration) -> String {
    seconds(duration)
}
