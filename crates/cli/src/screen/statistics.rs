//! Statistics of a run so far, in memory that does not grow with the number of jobs.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brigade::runner::{Event, Need, Outcome, Runner};

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
    /// Time that all finished jobs took, and the numbers of their cores, each added up.
    wall: Duration,
    widths: u64,
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

/// The minimum number of finished jobs for an estimate. The original runner waits for as many.
const MIN_JOBS_FOR_FORECAST: u64 = 5;
/// Number of slowest jobs and number of failures listed in the summary.
const NAMED: usize = 5;
/// Number of lines repeated from the output of a failed job.
const LAST_LINES: usize = 5;

impl Statistics {
    pub(crate) fn new(runner: &Runner, is_remote: bool) -> Self {
        Self {
            start: Instant::now(),
            cores: runner.cores().get(),
            slots: runner.slots().get(),
            is_pinned: runner.is_pinned(),
            succeeded: 0,
            failed: 0,
            supply: SupplyCounts::default(),
            running: BTreeMap::new(),
            need: None,
            is_remote,
            hosts: HostStatistics::default(),
            wall: Duration::ZERO,
            widths: 0,
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
        self.wall += outcome.wall;
        self.widths += outcome.cores.len().max(1) as u64;
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
        self.forecast(self.total()?.saturating_sub(begun), ages)
    }

    /// Returns the estimated time for `waiting` jobs and the running ones, which have run for
    /// `ages` so far, from the durations of finished jobs. Returns `None` before
    /// [`MIN_JOBS_FOR_FORECAST`] jobs have finished.
    #[expect(clippy::cast_precision_loss, reason = "an estimate is good for two digits at most")]
    fn forecast(&self, waiting: u64, ages: impl IntoIterator<Item = Duration>) -> Option<Duration> {
        let finished = self.finished_count();
        if finished < MIN_JOBS_FOR_FORECAST {
            return None;
        }
        let mean = self.wall.div_f64(finished as f64);
        let rests: Vec<f64> =
            ages.into_iter().map(|age| mean.saturating_sub(age).as_secs_f64()).collect();
        let mean = mean.as_secs_f64();
        let work = mean * waiting as f64 + rests.iter().sum::<f64>();
        let width = self.widths as f64 / finished as f64;
        // Narrow jobs are limited by the slots, wide ones by the cores. No job is divided: slots
        // without one do not help at the end.
        let at_once = (self.cores as f64 / width).min(self.slots as f64);
        let at_once = at_once.min(waiting as f64 + rests.len() as f64).max(1.0);
        let longest = rests.into_iter().fold(if waiting > 0 { mean } else { 0.0 }, f64::max);
        Duration::try_from_secs_f64((work / at_once).max(longest)).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn after(jobs: u64, width: u64) -> Statistics {
        let runner = Runner::builder().unpinned().jobs(4).build().expect("possible");
        let mut statistics = Statistics::new(&runner, false);
        statistics.succeeded = jobs;
        statistics.wall = Duration::from_secs(8 * jobs);
        statistics.widths = jobs * width;
        statistics
    }

    #[test]
    fn four_results_are_too_few_for_a_forecast() {
        assert_eq!(after(4, 1).forecast(10, []), None);
    }

    #[test]
    fn wide_jobs_take_the_cores_of_others() {
        let seconds = |width| after(5, width).forecast(10, []).map(|rest| rest.as_secs());
        assert_eq!(seconds(1), Some(20));
        assert_eq!(seconds(2), Some(40));
        assert_eq!(seconds(4), Some(80));
    }

    #[test]
    fn running_jobs_count_with_their_remaining_time() {
        let ages = [2, 20].map(Duration::from_secs);
        assert_eq!(after(5, 4).forecast(0, ages), Some(Duration::from_secs(6)));
    }

    #[test]
    fn the_last_jobs_take_as_long_as_one() {
        let rest = |waiting, ages: &[u64]| {
            let ages = ages.iter().copied().map(Duration::from_secs);
            after(5, 1).forecast(waiting, ages).map(|rest| rest.as_secs())
        };
        assert_eq!(rest(0, &[1]), Some(7));
        assert_eq!(rest(0, &[1, 7]), Some(7));
        assert_eq!(rest(1, &[]), Some(8));
        assert_eq!(rest(1, &[7, 7, 7, 7]), Some(8));
    }
}
