//! The deadlines of tasks: how long a task may wait and run.

use std::time::Duration;

use brigade_scheduler::Constraints;
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::RunLimits;

/// Deadlines as the user sets them, for a pool or for one task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadlines {
    /// Longest time from submission until the task starts.
    pub(crate) queue: Option<Duration>,
    /// Run time after which the task is asked to stop.
    pub(crate) soft: Option<Duration>,
    /// Run time after which the worker is killed.
    pub(crate) hard: Option<Duration>,
}

/// The effective deadlines of a task that has at least one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskDeadlines {
    /// Longest time from submission until the task starts.
    pub(crate) queue: Option<Duration>,
    /// Run time after which the task is asked to stop.
    pub(crate) soft: Option<Duration>,
    /// Run time after which the worker is killed.
    pub(crate) hard: Option<Duration>,
    pub(crate) submitted: Monotonic,
}

impl TaskDeadlines {
    /// Returns `None` without any deadline. With a soft deadline and no hard one, the task is
    /// killed `grace` after the soft deadline.
    pub(crate) fn new(
        queue: Option<Duration>,
        soft: Option<Duration>,
        hard: Option<Duration>,
        grace: Duration,
    ) -> Option<Self> {
        queue.or(soft).or(hard)?;
        let hard = hard.or_else(|| soft.map(|soft| soft.saturating_add(grace)));
        Some(Self { queue, soft, hard, submitted: clock::now() })
    }

    /// Returns the part that the scheduler enforces.
    pub(crate) fn constraints(&self) -> Constraints {
        let mut constraints = Constraints::default();
        constraints.queue_limit = self.queue;
        constraints.hard_limit = self.hard;
        constraints
    }

    /// Returns how much longer the task may wait in the queue.
    pub(crate) fn queue_left(&self) -> Option<Duration> {
        let waited = clock::now().saturating_since(self.submitted);
        self.queue.map(|limit| limit.saturating_sub(waited))
    }

    /// Returns the part that the worker is sent.
    pub(crate) fn run_limits(&self) -> RunLimits {
        RunLimits::new(self.soft, self.hard)
    }
}
