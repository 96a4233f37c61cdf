//! Records what a pool does, in constant memory.

mod failures;
mod history;
mod labels;
pub(crate) mod run;
mod slot;
mod slowest;
mod successes;

use std::fmt;
use std::time::Duration;

use crate::{FailureKind, Measurement, PoolSnapshot, PoolTimes};
use failures::Failures;
use history::RateHistory;
use labels::Labels;
use run::{Run, Timing};
use slot::Slot;
use slowest::Slowest;
use successes::Successes;

/// Number of slow tasks that are kept for a pool.
const SLOWEST: usize = 20;

/// The record of a pool. It is plain data: the owner passes in the time, in nanoseconds of a
/// monotonic clock, and keeps it under a lock of its own.
///
/// Its memory is bounded, whatever the load: four histograms, two for each of at most 65 labels,
/// ten minutes of history, and a few hundred bytes for each worker.
#[derive(Debug, Clone)]
pub struct Recorder {
    born: u64,
    /// The numbers; the rest is added when it is measured.
    sums: PoolSnapshot,
    /// Number of workers that had tasks when the last one was accepted.
    busy: u32,
    times: PoolTimes,
    failures: Failures,
    labels: Labels,
    slowest: Slowest<SLOWEST>,
    slots: Vec<Slot>,
    history: RateHistory,
    /// Those that are not added to the numbers above yet.
    successes: Successes,
}

impl Recorder {
    /// Creates the record of a pool that is built at `now`.
    pub fn new(now: u64) -> Self {
        Self {
            born: now,
            sums: PoolSnapshot::default(),
            busy: 0,
            times: PoolTimes::default(),
            failures: Failures::default(),
            labels: Labels::default(),
            slowest: Slowest::default(),
            slots: Vec::new(),
            history: RateHistory::default(),
            successes: Successes::default(),
        }
    }

    /// Records that `items` tasks were accepted. From then on `queued` tasks wait and `busy`
    /// workers have tasks.
    #[inline]
    pub fn accepted(&mut self, now: u64, items: u32, queued: u64, busy: u32) {
        self.add_successes();
        self.sums.enqueued += u64::from(items);
        self.sums.max_queue_depth = self.sums.max_queue_depth.max(queued);
        self.busy = busy;
        self.history.add(now, 0, 0, queued, busy);
    }

    /// Records that a task with this many bytes was sent to a worker.
    #[inline]
    pub fn sent(&mut self, slot: u32, bytes: u64) {
        self.sums.bytes_in += bytes;
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.sums.bytes_in += bytes;
        }
    }

    /// Records that tasks were cancelled before they started.
    pub fn cancelled(&mut self, items: u32) {
        self.add_successes();
        self.sums.cancelled += u64::from(items);
    }

    /// Records the success of a task without a label that was not timed, like
    /// [`finished`](Self::finished) but for less. Returns `false` if `finished` has to do it,
    /// because the task may be among the slowest.
    #[inline]
    pub fn succeeded(&mut self, now: u64, slot: u32, run_time: u64, bytes: u64) -> bool {
        self.successes.add(slot, now, run_time, bytes)
            || self.begin_successes(now, slot) && self.successes.add(slot, now, run_time, bytes)
    }

    /// Returns `false` if the slot is unknown.
    fn begin_successes(&mut self, now: u64, slot: u32) -> bool {
        self.add_successes();
        let of_slot = self.slots.get(slot as usize).map(Slot::longest_ignored);
        let longest = of_slot.map(|longest| longest.min(self.slowest.longest_ignored()));
        self.successes =
            Successes::begin(slot, now, RateHistory::end_of_second(now), longest.unwrap_or(0));
        longest.is_some()
    }

    #[inline]
    fn add_successes(&mut self) {
        if self.successes.count > 0 {
            self.add_all_successes();
        }
    }

    fn add_all_successes(&mut self) {
        let Successes { slot, count, bytes, run_time, first, .. } = self.successes;
        self.successes.count = 0;
        (self.successes.bytes, self.successes.run_time) = (0, 0);
        self.count_finished(first, count, 0, bytes);
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.count(count, 0, bytes);
            slot.add_run_time(run_time);
        }
    }

    /// Records the end of tasks that were not cancelled. For those that failed,
    /// [`failed`](Self::failed) follows.
    #[inline]
    pub fn finished(&mut self, now: u64, run: &Run<'_>) {
        self.add_successes();
        self.count_finished(now, run.items, run.failed, run.bytes);
        if let Some((slot, _)) = run.worker
            && let Some(slot) = self.slots.get_mut(slot as usize)
        {
            slot.ran(now, run);
        }
        let time = run.time_of_item();
        if let Some(time) = time {
            self.slowest.add(now, time, run);
        }
        if let Some(Timing { weight, queue_time, delivery_time }) = run.timing {
            for (times, time) in [
                (&mut self.times.run, time),
                (&mut self.times.queue, queue_time),
                (&mut self.times.delivery, delivery_time),
            ] {
                if let Some(time) = time {
                    times.record(time, weight);
                }
            }
        }
        self.labels.add(run);
    }

    fn count_finished(&mut self, now: u64, items: u32, failed: u32, bytes: u64) {
        let (items, failed) = (u64::from(items), u64::from(failed));
        // Without new tasks, nothing else shows how the queue drains.
        let pending = self.sums.enqueued.saturating_sub(self.sums.finished + self.sums.cancelled);
        let queued = pending.saturating_sub(u64::from(self.busy));
        self.sums.finished += items;
        self.sums.succeeded += items.saturating_sub(failed);
        self.sums.bytes_out += bytes;
        let busy = u32::try_from(pending).map_or(self.busy, |pending| self.busy.min(pending));
        self.history.add(now, items, failed, queued, busy);
    }

    /// Records why `count` tasks of those in `run` failed.
    pub fn failed(
        &mut self,
        now: u64,
        kind: FailureKind,
        count: u32,
        run: &Run<'_>,
        text: &dyn fmt::Display,
    ) {
        if count > 0 {
            self.failures.add(now, kind, count, run, text);
        }
    }

    /// Records that a process is started for a slot.
    pub fn worker_started(&mut self, (slot, generation): (u32, u32), now: u64) {
        let slot = slot as usize;
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Slot::default);
        }
        self.sums.restarts += u64::from(generation > 1);
        self.slots[slot].started(generation, now);
    }

    /// Records that a worker is ready for tasks, and when it began to run the pool's initializer.
    pub fn worker_ready(
        &mut self,
        slot: u32,
        is_forked: bool,
        initializing: Option<u64>,
        now: u64,
    ) {
        self.sums.forked += u64::from(is_forked);
        self.sums.executed += u64::from(!is_forked);
        let slot = self.slots.get_mut(slot as usize);
        if let Some(time) = slot.and_then(|slot| slot.ready(initializing, now)) {
            self.times.start.record(time, 1);
        }
    }

    /// Records that a worker was asked to exit, or killed. Only the first call counts.
    pub fn worker_leaving(&mut self, slot: u32, now: u64) {
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.leaving(now);
        }
    }

    /// Records that a worker's process is gone. It died unless it exited in order.
    pub fn worker_gone(&mut self, slot: u32, died: bool, now: u64) {
        self.sums.deaths += u64::from(died);
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.gone(now);
        }
    }

    /// Returns the record as a snapshot without `pool`, `name`, `state`, `pending` and its parts,
    /// and without what only the owner knows of the workers. The owner adds these and calls
    /// [`Measurement::summarize`].
    pub fn measure(&mut self, now: u64) -> Measurement {
        self.add_successes();
        let snapshot = PoolSnapshot {
            age: Duration::from_nanos(now.saturating_sub(self.born)),
            failures: self.failures.counts().clone(),
            recent_failures: self.failures.recent(now),
            workers: (0..).zip(&self.slots).map(|(slot, it)| it.snapshot(slot, now)).collect(),
            labels: self.labels.list(),
            slowest: self.slowest.list(now),
            history: self.history.points(now),
            ..self.sums.clone()
        };
        Measurement { snapshot, times: self.times.clone() }
    }
}

#[cfg(test)]
mod tests;
