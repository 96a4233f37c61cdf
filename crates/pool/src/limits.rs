//! How long a task may wait and run.

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_wire::RunLimits;

use crate::machine::Terms;

/// The limits of a task that has any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// From the submission until it begins.
    pub(crate) queue: Option<Duration>,
    /// From its begin until it is asked to end.
    pub(crate) soft: Option<Duration>,
    /// From its begin until it is killed.
    pub(crate) hard: Option<Duration>,
    pub(crate) submitted: Monotonic,
}

impl Limits {
    /// `None` when there is no limit. A task that does not end by itself at its soft limit gets `grace`, unless it has a hard
    /// limit as well.
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

    /// What the machine has to know.
    pub(crate) fn terms(&self) -> Terms {
        Terms { queue_limit: self.queue, run_limit: self.hard, ..Terms::default() }
    }

    /// How much longer it may wait.
    pub(crate) fn queue_left(&self) -> Option<Duration> {
        let waited = clock::now().saturating_since(self.submitted);
        self.queue.map(|limit| limit.saturating_sub(waited))
    }

    /// What the worker has to know.
    pub(crate) fn run_limits(&self) -> RunLimits {
        RunLimits::new(self.soft, self.hard)
    }
}
