//! Records what the pool does, for its metrics.
//!
//! A task is *timed* if its submission has an exact stamp. Reading the clock costs a twentieth of
//! what the host does for a task, so while tasks come by the ten thousand a second, one of
//! [`ONE_OF`] is timed and stands for the others. Counts, bytes, failures and slow tasks are
//! recorded for every task.

mod ended;

use std::sync::atomic::Ordering;

use brigade_metrics::Recorder;
use brigade_scheduler::Scheduler;
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::WorkerId;

use crate::cell::TaskCell;
use crate::drive::observer::{End, Observer, Started};

pub(in crate::drive) use ended::failure_kind;

/// Number of tasks that are timed in each tick of the system's timer, which takes 1 to 10 ms.
const ALL_UP_TO: u32 = 64;

/// Above that, one of this number is timed.
const ONE_OF: u8 = 64;

/// The metrics of a pool, with the choice of the tasks that are timed.
pub(in crate::drive) struct Recording {
    pub(in crate::drive) recorder: Recorder,
    /// The tick of the last submission.
    tick: Monotonic,
    /// Number of tasks that may still be timed in it.
    left: u32,
    /// Number of tasks that were not timed since the last one that was.
    skipped: u8,
    /// Number of tasks that were accepted and not recorded yet.
    accepted: u32,
}

impl Default for Recording {
    fn default() -> Self {
        let recorder = Recorder::new(clock::now().as_nanos());
        Self { recorder, tick: Monotonic::ZERO, left: 0, skipped: 0, accepted: 0 }
    }
}

impl Observer for Recording {
    /// Returns the time of the submission of `task`, and decides if the task is timed. The time is
    /// exact if it is, or if it has to be; otherwise it is slightly behind.
    #[inline]
    fn stamp(&mut self, task: &TaskCell, exact: bool) -> Monotonic {
        if !exact {
            let tick = clock::last_tick();
            if tick != self.tick {
                (self.tick, self.left) = (tick, ALL_UP_TO);
            }
            if self.left > 0 {
                self.left -= 1;
            } else if self.skipped + 1 < ONE_OF {
                self.skipped += 1;
                return tick;
            }
        }
        task.weight.store(self.skipped + 1, Ordering::Relaxed);
        self.skipped = 0;
        clock::now()
    }

    /// Notes that a task was accepted. It is recorded once it was sent, so that the worker begins
    /// earlier.
    #[inline]
    fn accepted(&mut self, task: &TaskCell) {
        self.accepted += task.with_chunk_progress(|chunk| chunk.shape.items).unwrap_or(1);
    }

    /// Records the tasks that were accepted.
    #[inline]
    fn handled(&mut self, now: Monotonic, scheduler: &Scheduler<TaskCell>) {
        let items = std::mem::take(&mut self.accepted);
        if items == 0 {
            return;
        }
        let busy = scheduler.busy_workers();
        let queued = scheduler.pending().saturating_sub(busy as u64);
        let busy = u32::try_from(busy).unwrap_or(u32::MAX);
        self.recorder.accepted(now.as_nanos(), items, queued, busy);
    }

    #[inline]
    fn sent(&mut self, worker: WorkerId, bytes: usize) {
        self.recorder.sent(worker.slot, bytes as u64);
    }

    fn worker_started(&mut self, now: Monotonic, worker: WorkerId) {
        self.recorder.worker_started((worker.slot, worker.generation), now.as_nanos());
    }

    /// Records that a worker is ready.
    fn worker_ready(&mut self, now: Monotonic, worker: WorkerId, ready: Started) {
        let initializing = ready.initializing.map(Monotonic::as_nanos);
        self.recorder.worker_ready(worker.slot, ready.is_forked, initializing, now.as_nanos());
    }

    fn worker_leaving(&mut self, now: Monotonic, worker: WorkerId) {
        self.recorder.worker_leaving(worker.slot, now.as_nanos());
    }

    fn worker_gone(&mut self, now: Monotonic, worker: WorkerId, died: bool) {
        self.recorder.worker_gone(worker.slot, died, now.as_nanos());
    }

    #[inline]
    fn ended(&mut self, now: Monotonic, end: &End<'_>) {
        self.record_end(now, end);
    }
}
