//! Statistics of a run so far, in memory that does not grow with the number of jobs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brigade::runner::{Event, Forecast, Need, Outcome, Runner};

use super::hosts::HostStatistics;
use super::text::{name_of, one_line};
use crate::input::Ahead;

/// Statistics of a run so far.
#[derive(Debug)]
pub(crate) struct Statistics {
    start: Instant,
    cores: usize,
    pub(crate) slots: usize,
    pub(crate) is_pinned: bool,
    pub(crate) succeeded: u64,
    pub(crate) failed: u64,
    pub(crate) supply: SupplyCounts,
    /// The running jobs, by slot.
    pub(crate) running: BTreeMap<usize, Running>,
    /// The need that the next job waits for, unless another job has to end first.
    pub(crate) need: Option<Need>,
    /// `true` if the jobs run on a cluster, where neither slots nor cores say how many run.
    pub(crate) is_remote: bool,
    pub(super) hosts: HostStatistics,
    forecast: Forecast,
    /// The slowest jobs with their durations, slowest first.
    pub(crate) slowest: Vec<(Duration, u64, String)>,
    pub(crate) failures: Vec<Failure>,
    /// Time for which cores were leased, added up over all cores.
    leased: Duration,
    busy: Duration,
    /// The largest number of cores of one job.
    widest: usize,
}

/// The jobs that the input has supplied and will supply.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SupplyCounts {
    /// Number of jobs supplied so far.
    pub(crate) supplied: u64,
    /// The jobs still to come, as far as they are known.
    pub(crate) ahead: Ahead,
    /// Number of jobs left out because an earlier run has done them.
    pub(crate) skipped: u64,
}

/// A running job.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u64,
    pub(crate) since: Instant,
    pub(crate) cores: Vec<u32>,
    pub(crate) name: String,
    /// The line that it printed last, if lines are shown.
    pub(crate) latest: Option<String>,
    /// `true` if the system has stopped it because it wants to use the terminal.
    pub(crate) wants_terminal: bool,
}

/// A job that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) number: u64,
    pub(crate) ending: String,
    pub(crate) wall: Duration,
    pub(crate) name: String,
    pub(crate) last_lines: Vec<String>,
}

/// Number of slowest jobs and number of failures listed in the summary.
const NAMED: usize = 5;
/// Number of lines repeated from the output of a failed job.
const LAST_LINES: usize = 5;

impl Statistics {
    pub(crate) fn new(runner: &Runner, is_remote: bool) -> Self {
        let (slots, cores) = (runner.slots(), runner.cores());
        Self {
            start: Instant::now(),
            cores: cores.get(),
            slots: slots.get(),
            is_pinned: runner.is_pinned(),
            succeeded: 0,
            failed: 0,
            supply: SupplyCounts::default(),
            running: BTreeMap::new(),
            need: None,
            is_remote,
            hosts: HostStatistics::default(),
            forecast: Forecast::new(slots, cores),
            slowest: Vec::new(),
            failures: Vec::new(),
            leased: Duration::ZERO,
            busy: Duration::ZERO,
            widest: 1,
        }
    }

    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Started { number, job, slot, host, cores, .. } => {
                self.hosts.started(host.as_deref());
                let running = Running {
                    number: *number,
                    since: Instant::now(),
                    cores: cores.clone(),
                    name: one_line(&name_of(job, || job.command_on(*slot))),
                    latest: None,
                    wants_terminal: false,
                };
                self.running.insert(*slot, running);
                self.need = None;
            }
            Event::Waiting { need } => self.need = Some(*need),
            Event::WantsTerminal { number, .. } => {
                let mut running = self.running.values_mut();
                if let Some(job) = running.find(|job| job.number == *number) {
                    job.wants_terminal = true;
                }
            }
            Event::Retrying(outcome) => self.attempt_ended(outcome),
            Event::Finished(outcome) => self.finished(outcome),
            _ => {}
        }
    }

    /// Takes note of the line that a running job has printed last.
    pub(crate) fn note_line(&mut self, number: u64, line: &[u8]) {
        if let Some(job) = self.running.values_mut().find(|job| job.number == number) {
            job.latest = Some(one_line(&String::from_utf8_lossy(line)));
        }
    }

    fn attempt_ended(&mut self, outcome: &Outcome) {
        self.running.remove(&outcome.slot);
        self.hosts.ended(outcome);
        let width = outcome.cores.len().max(1);
        self.widest = self.widest.max(width);
        self.leased += outcome.wall * u32::try_from(width).unwrap_or(u32::MAX);
        self.busy += outcome.user + outcome.system;
    }

    fn finished(&mut self, outcome: &Outcome) {
        self.attempt_ended(outcome);
        self.forecast.finished(outcome.wall, outcome.cores.len().max(1));
        let is_slow = |(wall, ..): &(Duration, u64, String)| outcome.wall > *wall;
        if self.slowest.len() < NAMED || self.slowest.last().is_some_and(is_slow) {
            self.slowest.push((outcome.wall, outcome.number, name(outcome)));
            self.slowest.sort_by_key(|(wall, number, _)| (Reverse(*wall), *number));
            self.slowest.truncate(NAMED);
        }
        if outcome.ending.is_success() {
            self.succeeded += 1;
            return;
        }
        self.failed += 1;
        if self.failures.len() < NAMED {
            let last_lines = outcome.last_lines(LAST_LINES);
            self.failures.push(Failure {
                number: outcome.number,
                ending: outcome.ending.to_string(),
                wall: outcome.wall,
                name: name(outcome),
                last_lines: last_lines.iter().map(|line| one_line(line)).collect(),
            });
        }
    }

    pub(crate) fn finished_count(&self) -> u64 {
        self.succeeded + self.failed
    }

    /// Returns the number of jobs in all, if known.
    pub(crate) fn total(&self) -> Option<u64> {
        Some(self.supply.supplied + self.supply.ahead.total()?)
    }

    /// Returns the number of jobs that are known so far, while the list is still being read.
    pub(crate) fn known(&self) -> u64 {
        self.supply.supplied + self.supply.ahead.count
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time until all jobs are done if they go on at the rate so far.
    fn rest_at_this_rate(&self) -> Option<Duration> {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let [done, left] =
            [self.finished_count(), self.total()?.saturating_sub(self.finished_count())]
                .map(|count| count as f64);
        Duration::try_from_secs_f64(self.elapsed().as_secs_f64() * left / done).ok()
    }

    /// Returns the estimated time until all jobs are done.
    pub(crate) fn rest(&self) -> Option<Duration> {
        if self.is_remote {
            return self.rest_at_this_rate();
        }
        let begun = self.finished_count() + self.running.len() as u64;
        let ages = self.running.values().map(|running| running.since.elapsed());
        self.forecast.rest(self.total()?.saturating_sub(begun), ages)
    }

    /// Returns the fraction of the cores' time (of the slots' time if jobs are not pinned) that was
    /// leased, and the average number of busy cores.
    pub(crate) fn utilization(&self, wall: Duration) -> Option<(f64, f64)> {
        let cores = u32::try_from(self.cores()).unwrap_or(u32::MAX);
        let have = wall.as_secs_f64() * f64::from(cores);
        let busy = self.busy.as_secs_f64() / wall.as_secs_f64();
        (have > 0.0).then(|| (self.leased.as_secs_f64() / have, busy))
    }

    /// Returns the number of cores that the jobs could use at once.
    pub(crate) fn cores(&self) -> usize {
        self.cores.min(self.slots.saturating_mul(self.widest))
    }
}

fn name(outcome: &Outcome) -> String {
    one_line(&name_of(&outcome.job, || outcome.command()))
}
