//! A snapshot whose times are not summarized yet.

use crate::{PoolSnapshot, Times};

/// The times of a pool, by kind.
#[derive(Debug, Clone, Default)]
pub struct PoolTimes {
    /// From submission until a worker began the task.
    pub queue: Times,
    /// From the start of a process until it was ready.
    pub start: Times,
    /// Run times.
    pub run: Times,
    /// From the end of the run until the outcome arrived.
    pub delivery: Times,
}

/// A snapshot whose times are not summarized yet. Summaries take longer than copying the times, so
/// the owner of a recorder copies them under its lock and summarizes them afterwards; and the times
/// of several pools can be added up, which their summaries cannot.
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    /// The snapshot, without the distributions that follow from `times`.
    pub snapshot: PoolSnapshot,
    /// The times.
    pub times: PoolTimes,
}

impl Measurement {
    /// Returns the snapshot with all its distributions.
    pub fn summarize(self) -> PoolSnapshot {
        PoolSnapshot {
            queue_time: self.times.queue.distribution(),
            start_time: self.times.start.distribution(),
            run_time: self.times.run.distribution(),
            delivery_time: self.times.delivery.distribution(),
            ..self.snapshot
        }
    }

    /// Adds the numbers and times of another pool. Lists of single tasks, failures, workers and
    /// seconds are left out.
    pub(crate) fn add(&mut self, other: &Self) {
        let (sum, part) = (&mut self.snapshot, &other.snapshot);
        sum.age = sum.age.max(part.age);
        sum.enqueued += part.enqueued;
        sum.finished += part.finished;
        sum.cancelled += part.cancelled;
        sum.pending += part.pending;
        sum.queued += part.queued;
        sum.running += part.running;
        sum.max_queue_depth = sum.max_queue_depth.max(part.max_queue_depth);
        sum.succeeded += part.succeeded;
        for (kind, count) in &part.failures {
            *sum.failures.entry(*kind).or_default() += count;
        }
        sum.attempts += part.attempts;
        sum.bytes_in += part.bytes_in;
        sum.bytes_out += part.bytes_out;
        sum.restarts += part.restarts;
        sum.executed += part.executed;
        sum.forked += part.forked;
        sum.deaths += part.deaths;
        let (sum, part) = (&mut self.times, &other.times);
        sum.queue.add(&part.queue);
        sum.start.add(&part.start);
        sum.run.add(&part.run);
        sum.delivery.add(&part.delivery);
    }
}
