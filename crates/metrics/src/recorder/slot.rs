//! The record of the processes of one slot.

use super::run::Run;
use super::slowest::Slowest;
use crate::{Shares, WorkerSnapshot};

/// Number of slow tasks that are kept for each slot.
const SLOWEST: usize = 5;

/// The record of one slot. Times are in nanoseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    /// The numbers; the rest is added to a snapshot.
    pub(crate) sums: WorkerSnapshot,
    slowest: Slowest<SLOWEST>,
    /// The present process; `None` if there is none.
    process: Option<Process>,
    /// Times of earlier processes, and the run time of all.
    past: Uses,
}

#[derive(Debug, Clone, Copy)]
struct Process {
    started: u64,
    initializing: Option<u64>,
    ready: Option<u64>,
    leaving: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Uses {
    start: u64,
    initialize: u64,
    run: u64,
    exit: u64,
    all: u64,
}

impl Slot {
    pub(crate) fn started(&mut self, generation: u32, now: u64) {
        self.sums.restarts += u64::from(self.sums.generation > 0);
        self.sums.generation = generation;
        let process = Process { started: now, initializing: None, ready: None, leaving: None };
        self.process = Some(process);
    }

    /// Records that the process is ready. Returns the time that it took.
    pub(crate) fn ready(&mut self, initializing: Option<u64>, now: u64) -> Option<u64> {
        let process = self.process.as_mut()?;
        process.initializing = initializing;
        process.ready = Some(now);
        Some(now.saturating_sub(process.started))
    }

    pub(crate) fn leaving(&mut self, now: u64) {
        if let Some(process) = &mut self.process {
            process.leaving.get_or_insert(now);
        }
    }

    pub(crate) fn gone(&mut self, now: u64) {
        if let Some(process) = self.process.take() {
            self.past.add(process.uses(now));
        }
    }

    #[inline]
    pub(crate) fn ran(&mut self, now: u64, run: &Run<'_>) {
        self.count(run.items, run.failed, run.bytes);
        if let (Some(time), Some(of_item)) = (run.run_time, run.time_of_item()) {
            self.add_run_time(time);
            self.slowest.add(now, of_item, run);
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, items: u32, failed: u32, bytes: u64) {
        self.sums.tasks += u64::from(items);
        self.sums.failures += u64::from(failed);
        self.sums.bytes_out += bytes;
    }

    #[inline]
    pub(crate) fn add_run_time(&mut self, time: u64) {
        self.past.run = self.past.run.saturating_add(time);
    }

    /// Returns the longest run time that is not among the slowest tasks.
    pub(crate) fn longest_ignored(&self) -> u64 {
        self.slowest.longest_ignored()
    }

    /// Returns the record. The driver adds what it knows of the present process.
    pub(crate) fn snapshot(&self, slot: u32, now: u64) -> WorkerSnapshot {
        let mut uses = self.past;
        if let Some(process) = &self.process {
            uses.add(process.uses(now));
        }
        WorkerSnapshot {
            slot,
            shares: uses.shares(),
            slowest: self.slowest.list(now),
            ..self.sums.clone()
        }
    }
}

impl Process {
    fn uses(&self, now: u64) -> Uses {
        let ready = self.ready.unwrap_or(now);
        let initializing = self.initializing.unwrap_or(ready).clamp(self.started, ready);
        Uses {
            start: initializing - self.started,
            initialize: ready - initializing,
            run: 0,
            exit: self.leaving.map_or(0, |leaving| now.saturating_sub(leaving)),
            all: now.saturating_sub(self.started),
        }
    }
}

impl Uses {
    fn add(&mut self, other: Self) {
        self.start += other.start;
        self.initialize += other.initialize;
        self.run += other.run;
        self.exit += other.exit;
        self.all += other.all;
    }

    #[expect(clippy::cast_precision_loss, reason = "shares need few digits")]
    fn shares(self) -> Shares {
        if self.all == 0 {
            return Shares::default();
        }
        let share = |time: u64| time as f64 / self.all as f64;
        // A worker that was asked to exit while it ran a task did both at once.
        let (start, initialize) = (share(self.start), share(self.initialize));
        let run = share(self.run).min(1.0 - start - initialize).max(0.0);
        let exit = share(self.exit).min(1.0 - start - initialize - run).max(0.0);
        let wait = (1.0 - start - initialize - run - exit).max(0.0);
        Shares { start, initialize, wait, run, exit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_over_all_processes() {
        let mut slot = Slot::default();
        slot.started(1, 0);
        assert_eq!(slot.ready(Some(10), 30), Some(30));
        slot.ran(70, &Run { items: 1, run_time: Some(30), ..Run::default() });
        slot.leaving(80);
        slot.leaving(85);
        slot.gone(100);
        slot.started(2, 1_000);
        slot.ready(None, 1_100);
        let snapshot = slot.snapshot(4, 1_100);
        let Shares { start, initialize, wait, run, exit } = snapshot.shares;
        let expected = [110.0, 20.0, 20.0, 30.0, 20.0].map(|time| time / 200.0);
        for (share, expected) in [start, initialize, wait, run, exit].into_iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{:?}", snapshot.shares);
        }
        assert_eq!((snapshot.slot, snapshot.generation, snapshot.restarts), (4, 2, 1));
    }

    #[test]
    fn a_lie_about_the_run_time_uses_no_more_than_all_of_it() {
        let mut slot = Slot::default();
        slot.started(1, 0);
        slot.ran(5, &Run { items: 1, run_time: Some(u64::MAX), ..Run::default() });
        slot.ran(5, &Run { items: 1, run_time: Some(u64::MAX), ..Run::default() });
        let Shares { start, wait, run, .. } = slot.snapshot(0, 10).shares;
        assert!((start + run + wait - 1.0).abs() < 1e-9);
    }
}
