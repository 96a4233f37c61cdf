//! The record of where and when a task ran, for those that report it.

use std::time::{Duration, Instant};

use brigade_sys::clock::{self, Monotonic};
use brigade_wire::{Attempt, WorkerId};

use crate::emitted::Emitted;
use crate::sync::Mutex;

/// The last run of a task. The thread that handles the outcome writes it before the outcome is
/// stored.
#[derive(Debug, Default)]
pub(crate) struct RunRecord {
    run: Mutex<Run>,
    /// The items that the task emits; `None` for a task that returns a value.
    pub(crate) emitted: Option<Box<Emitted>>,
}

/// The last run of a task, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Run {
    /// `None` if the task never started.
    pub(crate) worker: Option<WorkerId>,
    pub(crate) attempt: Option<Attempt>,
    /// As the worker measured it, or from the start until its death.
    pub(crate) time: Option<Duration>,
    /// The arrival of the outcome.
    finished: Option<Monotonic>,
}

impl RunRecord {
    pub(crate) fn ran(&self, worker: WorkerId, time: Option<Duration>) {
        let mut run = self.run.lock();
        (run.worker, run.time) = (Some(worker), time);
    }

    pub(crate) fn finished(&self, attempt: Attempt) {
        let mut run = self.run.lock();
        (run.attempt, run.finished) = (Some(attempt), Some(clock::now()));
    }

    pub(crate) fn get(&self) -> Run {
        *self.run.lock()
    }
}

impl Run {
    /// Returns a run that has taken `time` until now.
    pub(crate) fn so_far(worker: WorkerId, attempt: Attempt, time: Option<Duration>) -> Self {
        let (worker, attempt, finished) = (Some(worker), Some(attempt), Some(clock::now()));
        Self { worker, attempt, time, finished }
    }

    /// Returns when the task started, if it did, and when its outcome arrived.
    pub(crate) fn times(&self) -> (Option<Instant>, Instant) {
        let (now, instant) = (clock::now(), Instant::now());
        let ago = now.saturating_since(self.finished.unwrap_or(now));
        let finished = instant.checked_sub(ago).unwrap_or(instant);
        let started = self.time.map(|time| finished.checked_sub(time).unwrap_or(finished));
        (started, finished)
    }
}
