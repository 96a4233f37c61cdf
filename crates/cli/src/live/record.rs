//! The record of a run in the form of a pool's metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use brigade::metrics::{
    FailureKind, LabelSnapshot, Measurement, PoolState, Recorder, Run, RunningTask, Timing,
    WorkerSnapshot, WorkerState,
};
use brigade::runner::{Ending, Event, Outcome};

use crate::screen::name_of;

/// The record of a run.
#[derive(Debug)]
pub(super) struct LiveRecord {
    /// The beginning of the recorder's time.
    start: Instant,
    recorder: Recorder,
    slots: usize,
    /// By slot, from 1.
    running: BTreeMap<usize, Running>,
    /// Number of jobs still to come, as far as it is known.
    remaining: u64,
    /// Number of attempts that ended.
    attempts: u64,
    /// Labels that jobs have of their own; other jobs are called by their command lines.
    labels: BTreeSet<String>,
    /// Slots that have run a job.
    used: BTreeSet<usize>,
    is_halting: bool,
}

#[derive(Debug)]
struct Running {
    number: u64,
    attempt: u32,
    name: String,
    pid: u32,
    since: Instant,
}

/// The largest number of labels of jobs that are kept.
const LABELS: usize = 64;
/// All jobs of a slot count as one worker without generations: a new process for each job is not a
/// restart.
const GENERATION: u32 = 0;

impl LiveRecord {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            start: Instant::now(),
            recorder: Recorder::new(0),
            slots,
            running: BTreeMap::new(),
            remaining: 0,
            attempts: 0,
            labels: BTreeSet::new(),
            used: BTreeSet::new(),
            is_halting: false,
        }
    }

    pub(super) fn note(&mut self, event: &Event, remaining: Option<u64>) {
        self.remaining = remaining.unwrap_or(0);
        match event {
            Event::Started { number, job, attempt, slot, pid, .. } => {
                let slot = *slot;
                if let Some(label) = job.label.as_ref().filter(|_| self.labels.len() < LABELS) {
                    self.labels.insert(label.clone());
                }
                let name = name_of(job, || job.command_on(slot));
                let (number, attempt, pid) = (*number, *attempt, *pid);
                self.running
                    .insert(slot, Running { number, attempt, name, pid, since: Instant::now() });
                let now = self.now();
                self.use_slot(slot, now);
                let busy = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
                // A retry is the same job.
                let jobs = u32::from(attempt == 1);
                self.recorder.accepted(now, jobs, self.remaining, busy);
            }
            Event::Retrying(outcome) => {
                self.attempts += 1;
                self.running.remove(&outcome.slot);
            }
            Event::Finished(outcome) if outcome.attempts > 0 => self.finished(outcome),
            Event::Halting(_) => self.is_halting = true,
            _ => {}
        }
    }

    /// Returns the recorder's time, in nanoseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn use_slot(&mut self, slot: usize, since: u64) {
        if self.used.insert(slot) {
            let slot = number(slot);
            self.recorder.worker_started((slot, GENERATION), since);
            self.recorder.worker_ready(slot, false, None, since);
        }
    }

    fn finished(&mut self, outcome: &Outcome) {
        self.attempts += 1;
        let slot = outcome.slot;
        let running = self.running.remove(&slot);
        let name = running.map_or_else(|| outcome.job.to_string(), |running| running.name);
        let run = Run {
            task: outcome.number,
            label: Some(&name),
            items: 1,
            failed: u32::from(!outcome.ending.is_success()),
            worker: (outcome.slot > 0).then_some((number(slot), GENERATION)),
            run_time: u64::try_from(outcome.wall.as_nanos()).ok(),
            bytes: outcome.stdout.len().unwrap_or(0),
            timing: Some(Timing { weight: 1, queue_time: None, delivery_time: None }),
        };
        let now = self.now();
        self.recorder.finished(now, &run);
        if let Some(kind) = failure_kind(&outcome.ending) {
            self.recorder.failed(now, kind, 1, &run, &outcome.ending);
        }
    }

    pub(super) fn measure(&mut self) -> Measurement {
        let mut measurement = self.recorder.measure(self.now());
        // Slots do not start: their processes belong to jobs.
        measurement.times.start = brigade::metrics::Times::default();
        let snapshot = &mut measurement.snapshot;
        (snapshot.pool, snapshot.attempts) = (1, self.attempts);
        snapshot.state = if self.is_halting { PoolState::ShuttingDown } else { PoolState::Open };
        snapshot.enqueued += self.remaining;
        snapshot.pending = snapshot.enqueued - snapshot.finished;
        // A job that waits for its next attempt is queued.
        snapshot.running = (self.running.len() as u64).min(snapshot.pending);
        snapshot.queued = snapshot.pending - snapshot.running;
        snapshot.max_queue_depth = snapshot.max_queue_depth.max(snapshot.queued);
        // A command line that nobody has called a label says nothing about others.
        let is_label = |label: &LabelSnapshot| {
            let is_other = label.label == LabelSnapshot::OTHER && !self.labels.is_empty();
            is_other || self.labels.contains(&label.label)
        };
        snapshot.labels.retain(is_label);
        snapshot.workers.resize_with(self.slots + 1, WorkerSnapshot::default);
        // Slots count from 1.
        snapshot.workers.remove(0);
        for (slot, worker) in (1..).zip(&mut snapshot.workers) {
            worker.slot = number(slot);
            worker.state = WorkerState::Idle;
            if let Some(running) = self.running.get(&slot) {
                worker.state = WorkerState::Busy;
                worker.pid = Some(running.pid);
                let mut task = RunningTask::default();
                (task.task, task.attempt, task.items) = (running.number, running.attempt, 1);
                task.label.clone_from(&running.name);
                task.elapsed = running.since.elapsed();
                worker.running = Some(task);
            }
        }
        measurement
    }
}

fn failure_kind(ending: &Ending) -> Option<FailureKind> {
    match ending {
        _ if ending.is_success() => None,
        Ending::TimedOut { .. } => Some(FailureKind::Deadline),
        Ending::LimitExceeded { .. } => Some(FailureKind::Limit),
        Ending::Signalled(_) | Ending::Stopped | Ending::NotKilled => Some(FailureKind::Killed),
        Ending::NotStarted(_) => Some(FailureKind::NotStarted),
        _ => Some(FailureKind::Exited),
    }
}

fn number(slot: usize) -> u32 {
    u32::try_from(slot).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use brigade::runner::{Job, Runner};

    use super::*;

    /// Runs the jobs on two slots, and returns the record after each event.
    fn run(jobs: Vec<Job>) -> LiveRecord {
        let runner = Runner::builder().unpinned().jobs(2).build().unwrap();
        let mut record = LiveRecord::new(2);
        let mut remaining = jobs.len() as u64;
        runner
            .run(jobs, |event| {
                if let Event::Started { attempt: 1, .. } = &event {
                    remaining -= 1;
                }
                record.note(&event, Some(remaining));
                let snapshot = record.measure().summarize();
                assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.pending);
                assert_eq!(snapshot.pending, snapshot.queued + snapshot.running);
                let failed = snapshot.failures.values().sum::<u64>();
                assert_eq!(snapshot.finished, snapshot.succeeded + failed);
                assert_eq!(snapshot.workers.len(), 2);
            })
            .unwrap();
        record
    }

    #[test]
    fn the_counts_agree_at_every_event() {
        let jobs = vec![
            Job::new("true"),
            Job::shell("exit 3").retries(1),
            Job::new("/does/not/exist"),
            Job::shell("kill -9 $$"),
        ];
        let snapshot = run(jobs).measure().summarize();
        assert_eq!((snapshot.enqueued, snapshot.succeeded, snapshot.pending), (4, 1, 0));
        let failures: Vec<_> = snapshot.failures.into_iter().collect();
        let expected =
            [FailureKind::Killed, FailureKind::Exited, FailureKind::NotStarted].map(|it| (it, 1));
        assert_eq!(failures, expected);
        assert_eq!(snapshot.restarts, 0);
        assert_eq!(snapshot.workers.iter().map(|worker| worker.slot).collect::<Vec<_>>(), [1, 2]);
        assert!(snapshot.slowest.iter().all(|task| ["1", "2"].contains(&task.worker.as_str())));
        assert!(snapshot.recent_failures.iter().any(|failure| failure.text == "exit code 3"));
    }

    #[test]
    fn only_labels_of_jobs_are_labels() {
        let jobs = vec![Job::new("true").label("fast"), Job::new("true").arg("x")];
        let snapshot = run(jobs).measure().summarize();
        let labels: Vec<_> = snapshot.labels.iter().map(|label| label.label.as_str()).collect();
        assert_eq!(labels, ["fast"]);
        assert!(snapshot.slowest.iter().any(|task| task.label == "true x"));
    }
}
