//! What is known of a run so far, in memory that does not grow with it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use brigade::runner::{Event, Forecast, Outcome};

use super::text::one_line;

/// What is known of a run so far.
#[derive(Debug)]
pub(crate) struct Statistics {
    start: Instant,
    cores: usize,
    slots: usize,
    succeeded: u64,
    failed: u64,
    skipped: u64,
    waiting: Option<u64>,
    running: BTreeMap<usize, Running>,
    forecast: Forecast,
    slowest: BinaryHeap<Reverse<(Duration, u64, String)>>,
    failures: Vec<Failure>,
    /// Cores times the time for which they were leased.
    leased: Duration,
    busy: Duration,
}

/// A job that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u64,
    pub(crate) since: Instant,
    pub(crate) cores: Vec<u32>,
    pub(crate) name: String,
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

/// How many of the slowest jobs and of the failures are named in the end.
const NAMED: usize = 5;
/// How many lines of a failed job's output are repeated.
const LAST_LINES: usize = 5;
/// How much of an output is looked at for them.
const LAST_BYTES: usize = 4096;

impl Statistics {
    pub(crate) fn new(slots: NonZeroUsize, cores: NonZeroUsize) -> Self {
        Self {
            start: Instant::now(),
            cores: cores.get(),
            slots: slots.get(),
            succeeded: 0,
            failed: 0,
            skipped: 0,
            waiting: None,
            running: BTreeMap::new(),
            forecast: Forecast::new(slots, cores),
            slowest: BinaryHeap::new(),
            failures: Vec::new(),
            leased: Duration::ZERO,
            busy: Duration::ZERO,
        }
    }

    /// How many jobs are still to come, if that is known, and how many an earlier run has done.
    pub(crate) fn note_input(&mut self, waiting: Option<u64>, skipped: u64) {
        (self.waiting, self.skipped) = (waiting, skipped);
    }

    pub(crate) fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { number, job, slot, cores, .. } => {
                let name = job
                    .label_text()
                    .map_or_else(|| job.command_on(*slot).to_string(), str::to_owned);
                let running = Running {
                    number: *number,
                    since: Instant::now(),
                    cores: cores.to_vec(),
                    name: one_line(&name),
                };
                self.running.insert(*slot, running);
            }
            Event::Retrying { number, .. } => {
                self.running.retain(|_, running| running.number != *number);
            }
            Event::Finished(outcome) => self.finished(outcome),
            _ => {}
        }
    }

    fn finished(&mut self, outcome: &Outcome) {
        if self.running.get(&outcome.slot).is_some_and(|running| running.number == outcome.number) {
            self.running.remove(&outcome.slot);
        }
        let width = outcome.cores.len().max(1);
        self.forecast.finished(outcome.wall, width);
        self.leased += outcome.wall * u32::try_from(width).unwrap_or(u32::MAX);
        self.busy += outcome.user + outcome.system;
        if self.slowest.len() < NAMED
            || self.slowest.peek().is_some_and(|Reverse((wall, ..))| outcome.wall > *wall)
        {
            self.slowest.push(Reverse((outcome.wall, outcome.number, name(outcome))));
            if self.slowest.len() > NAMED {
                self.slowest.pop();
            }
        }
        if outcome.ending.is_success() {
            self.succeeded += 1;
            return;
        }
        self.failed += 1;
        if self.failures.len() < NAMED {
            self.failures.push(Failure {
                number: outcome.number,
                ending: outcome.ending.to_string(),
                wall: outcome.wall,
                name: name(outcome),
                last_lines: last_lines(outcome),
            });
        }
    }

    pub(crate) fn succeeded(&self) -> u64 {
        self.succeeded
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed
    }

    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    pub(crate) fn finished_count(&self) -> u64 {
        self.succeeded + self.failed
    }

    /// How many jobs there are in all, if that is known.
    pub(crate) fn total(&self) -> Option<u64> {
        Some(self.finished_count() + self.running.len() as u64 + self.waiting?)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &Running> {
        self.running.values()
    }

    pub(crate) fn running_count(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// How long the rest will take.
    pub(crate) fn rest(&self) -> Option<Duration> {
        let ages = self.running.values().map(|running| running.since.elapsed());
        self.forecast.rest(self.waiting?, ages)
    }

    /// The slowest jobs, slowest first.
    pub(crate) fn slowest(&self) -> Vec<(Duration, u64, &str)> {
        let mut slowest: Vec<_> = self
            .slowest
            .iter()
            .map(|Reverse((wall, number, name))| (*wall, *number, name.as_str()))
            .collect();
        slowest.sort_by_key(|(wall, number, _)| (Reverse(*wall), *number));
        slowest
    }

    /// The first failures.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// Which part of the cores' time was leased, and in which part they worked.
    pub(crate) fn utilisation(&self, wall: Duration) -> Option<(f64, f64)> {
        let have = wall.as_secs_f64() * f64::from(u32::try_from(self.cores).unwrap_or(u32::MAX));
        (have > 0.0).then(|| (self.leased.as_secs_f64() / have, self.busy.as_secs_f64() / have))
    }

    pub(crate) fn cores(&self) -> usize {
        self.cores
    }
}

fn name(outcome: &Outcome) -> String {
    one_line(&match outcome.job.label_text() {
        Some(label) => label.to_owned(),
        None => crate::joblog::command(outcome),
    })
}

/// The end of what it complained, or else of what it printed.
fn last_lines(outcome: &Outcome) -> Vec<String> {
    let tail = |captured: &brigade::runner::Captured| captured.tail(LAST_BYTES).unwrap_or_default();
    let mut bytes = tail(&outcome.stderr);
    if bytes.trim_ascii().is_empty() {
        bytes = tail(&outcome.stdout);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text.lines().map(one_line).collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].to_vec()
}
