//! The number of tasks that a node holds: one for each worker, and for brief tasks a backlog, so
//! that a worker does not wait for the server after each.

use std::time::Duration;

use crate::clock::Monotonic;

/// The work that is kept in the backlog of a worker: many times a round trip to the server, and
/// little to hand back.
const BACKLOG: Duration = Duration::from_millis(10);

/// Maximum number of tasks in the backlog of a worker.
const BACKLOG_LIMIT: u32 = 256;

/// Number of runs after which the mean run time is computed anew.
const WINDOW: u32 = 16;

/// Learns how long tasks occupy a worker, from the time that workers are busy and the number of
/// tasks that end.
#[derive(Debug)]
pub(super) struct Capacity {
    workers: u32,
    /// `true` if brief tasks have a backlog.
    has_backlog: bool,
    /// Number of tasks that were begun, those in the backlogs and the reserved workers included.
    running: u32,
    /// Number of workers that are kept free, each for a task whose begin is being recorded.
    reserved: u32,
    /// Time up to which `busy` counts.
    counted: Monotonic,
    /// Time that workers were busy in this window, all together.
    busy: Duration,
    /// Number of runs that ended in this window.
    ended: u32,
    /// Mean time that a task occupies a worker; `None` before the first window.
    mean: Option<Duration>,
}

impl Capacity {
    pub(super) fn new(workers: u32, has_backlog: bool) -> Self {
        let (counted, busy) = (Monotonic::ZERO, Duration::ZERO);
        Self { workers, has_backlog, running: 0, reserved: 0, counted, busy, ended: 0, mean: None }
    }

    /// Returns the number of tasks to hold.
    pub(super) fn tasks(&self) -> u32 {
        let backlog = self.mean.map_or(0, |mean| {
            let tasks = (BACKLOG + mean / 2).as_nanos() / mean.as_nanos().max(1);
            u32::try_from(tasks).unwrap_or(u32::MAX).min(BACKLOG_LIMIT)
        });
        self.workers.saturating_mul(1 + backlog)
    }

    /// Returns `true` if more tasks were begun than there are workers.
    pub(super) fn has_backlog(&self) -> bool {
        self.running > self.workers
    }

    /// Returns `true` if another task would begin at once.
    pub(super) fn has_free_worker(&self) -> bool {
        self.running < self.workers
    }

    /// Returns `true` if another task may be given to the pool: it takes no reserved worker.
    pub(super) fn has_place(&self) -> bool {
        self.reserved == 0 || self.has_free_worker()
    }

    /// Returns `true` if another task would have to wait for long, behind those that wait already.
    pub(super) fn is_exceeded(&self, waiting: usize) -> bool {
        let ahead = self.running.saturating_add(u32::try_from(waiting).unwrap_or(u32::MAX));
        ahead >= self.tasks() && self.mean.is_none_or(|mean| mean > BACKLOG)
    }

    /// Returns the number of tasks that were begun, those in the backlogs included.
    pub(super) fn running(&self) -> u32 {
        self.running
    }

    pub(super) fn started(&mut self, now: Monotonic) {
        self.count(now);
        self.running += 1;
    }

    /// Keeps a free worker for a task, which counts as begun from now on.
    pub(super) fn reserve(&mut self, now: Monotonic) {
        self.started(now);
        self.reserved += 1;
    }

    /// Lets the task begin that a worker was kept for.
    pub(super) fn begin_reserved(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// Gives a worker back that was kept for a task.
    pub(super) fn release(&mut self, now: Monotonic) {
        self.begin_reserved();
        self.ended(now, false);
    }

    pub(super) fn ended(&mut self, now: Monotonic, counts: bool) {
        self.count(now);
        self.running = self.running.saturating_sub(1);
        self.ended += u32::from(counts);
        // A task that takes long says so by itself.
        let is_full = self.ended >= WINDOW || self.ended > 0 && self.busy > 2 * BACKLOG;
        if is_full {
            self.mean = self.has_backlog.then(|| self.busy / self.ended);
            (self.busy, self.ended) = (Duration::ZERO, 0);
        }
    }

    /// Learns from runs that have not ended.
    pub(super) fn learn(&mut self, now: Monotonic) {
        self.count(now);
        let runs = self.ended + self.running.min(self.workers);
        if let Some(mean) = &mut self.mean {
            *mean = (*mean).max(self.busy / runs.max(1));
        }
    }

    fn count(&mut self, now: Monotonic) {
        let elapsed = now.saturating_since(self.counted);
        self.busy += elapsed * self.running.min(self.workers);
        self.counted = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `count` tasks one after the other on one of two workers.
    fn after_tasks_of(run_time: Duration, count: u32) -> u32 {
        let mut capacity = Capacity::new(2, true);
        for index in 0..count {
            capacity.started(Monotonic::ZERO + run_time * index);
            capacity.ended(Monotonic::ZERO + run_time * (index + 1), true);
        }
        capacity.tasks()
    }

    #[test]
    fn long_tasks_have_no_backlog() {
        assert_eq!(after_tasks_of(Duration::from_secs(60), 0), 2);
        assert_eq!(after_tasks_of(Duration::from_secs(60), 3), 2);
        assert_eq!(after_tasks_of(Duration::from_millis(25), 20), 2);
    }

    #[test]
    fn brief_tasks_have_a_bounded_backlog() {
        assert_eq!(after_tasks_of(Duration::from_millis(10), 20), 4);
        assert_eq!(after_tasks_of(Duration::from_millis(1), 20), 22);
        assert_eq!(after_tasks_of(Duration::from_nanos(10), 20), 2 * 257);
    }

    #[test]
    fn pauses_between_tasks_do_not_count() {
        let mut capacity = Capacity::new(1, true);
        for second in 0..20 {
            let start = Monotonic::ZERO + Duration::from_secs(second);
            capacity.started(start);
            capacity.ended(start + Duration::from_millis(1), true);
        }
        assert_eq!(capacity.tasks(), 11);
    }
}
