//! Handles the events of a run: passes them to the sinks, logs finished jobs, updates the screen.

use std::io;

use brigade::runner::{Event, Joblog, Outcome, Stopper};
use miette::{IntoDiagnostic, Report, WrapErr, miette};

use super::event_queue::EventQueue;
use super::sink::{Sink, Sinks};
use super::status::{BROKEN_PIPE, Decision};
use crate::screen::{Screen, SupplyCounts};

/// Handles the events of a run, on the output thread.
pub(super) struct Session {
    pub(super) screen: Screen,
    pub(super) sinks: Sinks,
    joblog: Option<Joblog>,
    /// `true` if failed jobs and the end of the run are not reported.
    is_quiet: bool,
    queue: EventQueue,
    stopper: Stopper,
    /// The moment when the halt policy was met.
    pub(super) decision: Option<Decision>,
    /// Our own first failure, which stops the run.
    pub(super) failure: Option<Result<u8, Report>>,
}

impl Session {
    pub(super) fn new(
        screen: Screen,
        sinks: Sinks,
        joblog: Option<Joblog>,
        is_quiet: bool,
        queue: EventQueue,
        stopper: Stopper,
    ) -> Self {
        let (decision, failure) = (None, None);
        Self { screen, sinks, joblog, is_quiet, queue, stopper, decision, failure }
    }

    /// Handles an event.
    pub(super) fn take(&mut self, event: Event, supply: SupplyCounts) {
        if let Event::Finished(outcome) = &event
            && outcome.attempts == 0
        {
            // The run ended before the job started: it counts neither as done nor as failed.
            return;
        }
        self.screen.statistics.supply = supply;
        self.screen.statistics.note(&event);
        if !self.pass_on(|sink, screen| sink.event(&event, screen))
            && let Event::Output { number, .. } = &event
        {
            self.queue.cut(*number);
        }
        // A reader that has had enough does not want to know about the end of the rest.
        if !self.has_lost_reader() {
            self.screen.show(&event);
        }
        if let Event::Finished(outcome) = event {
            if outcome.is_decisive {
                let (ending, failed) = (outcome.ending.clone(), self.screen.statistics.failed);
                self.decision = Some(Decision { ending, failed });
            }
            for outcome in self.queue.in_turn(outcome) {
                self.deliver(&outcome);
            }
        }
    }

    /// Passes an outcome on, and then writes its line to the log: what a logged job has printed is
    /// complete, because the job does not run again.
    fn deliver(&mut self, outcome: &Outcome) {
        let is_whole = self.queue.is_whole(outcome.number);
        let is_passed_on = self.pass_on(|sink, screen| sink.outcome(outcome, screen)) && is_whole;
        if !self.has_lost_reader() && !self.is_quiet {
            self.screen.show_failure(outcome);
        }
        if let Err(lost) = check_whole(outcome) {
            return self.fail(Err(lost).wrap_err("cannot store a job's output"));
        }
        if let Some(joblog) = self.joblog.as_mut().filter(|_| is_passed_on)
            && let Err(error) = joblog.write(outcome)
        {
            self.check(error, "write to the joblog");
        }
    }

    /// Calls each sink. Returns `false` if one of them has failed.
    fn pass_on(&mut self, call: impl Fn(&mut dyn Sink, &mut Screen) -> io::Result<()>) -> bool {
        let Self { sinks, screen, .. } = self;
        let mut failures = Vec::new();
        for (purpose, sink) in sinks {
            if let Err(error) = call(&mut **sink, screen) {
                failures.push((error, *purpose));
            }
        }
        // What a reader no longer wants has not failed.
        let has_failed = |(error, _): &(io::Error, _)| error.kind() != io::ErrorKind::BrokenPipe;
        let is_passed_on = !failures.iter().any(has_failed);
        for (error, purpose) in failures {
            self.check(error, purpose);
        }
        is_passed_on
    }

    fn has_lost_reader(&self) -> bool {
        matches!(self.failure, Some(Ok(BROKEN_PIPE)))
    }

    /// Stops the run because an operation of our own failed.
    fn check(&mut self, error: io::Error, purpose: &'static str) {
        if error.kind() == io::ErrorKind::BrokenPipe {
            // The reader has had enough, and does not need a message.
            self.fail(Ok(BROKEN_PIPE));
        } else {
            self.fail(Err(error).into_diagnostic().wrap_err_with(|| format!("cannot {purpose}")));
        }
    }

    /// Stops the run, if this is the first failure.
    fn fail(&mut self, failure: Result<u8, Report>) {
        if self.failure.is_some() {
            return;
        }
        match failure {
            Ok(_) => self.stopper.kill(),
            Err(_) => self.stopper.stop(),
        }
        self.failure = Some(failure);
    }

    /// Delivers the jobs that were held back, and shows the summary.
    pub(super) fn close(mut self, supply: SupplyCounts) -> Self {
        for outcome in self.queue.rest() {
            self.deliver(&outcome);
        }
        self.screen.statistics.supply = supply;
        let is_silent = self.has_lost_reader() || self.is_quiet;
        self.screen.close(is_silent);
        self
    }
}

/// Returns an error if a part of a job's output had no room.
fn check_whole(outcome: &Outcome) -> Result<(), Report> {
    for (captured, name) in [(&outcome.stdout, "output"), (&outcome.stderr, "error output")] {
        let (number, lost) = (outcome.number, captured.dropped());
        if lost > 0 {
            return Err(miette!(
                "{lost} bytes of the {name} of job {number} were lost: the directory for temporary files has no room for \
                 them; free some space, or set TMPDIR to another directory"
            ));
        }
    }
    Ok(())
}
