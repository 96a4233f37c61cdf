//! The deadlines of tasks, how long a task may wait and run, and its limits of processor time and
//! memory.
//!
//! | type | holds the limits | of |
//! |---|---|---|
//! | [`Deadlines`] | all | a pool or a task, as the user sets them |
//! | [`TaskDeadlines`] | all | a task, or each item of a chunk |
//! | [`Constraints`] | all but soft | a task or a whole chunk, for the scheduler |
//! | [`RunLimits`] | soft, hard | a task or each item, in a message to the worker |
//!
//! [`Constraints`]: brigade_scheduler::Constraints

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_wire::RunLimits;

/// The limits of deadlines, as the user sets them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadlines {
    /// Longest time from submission until the task starts.
    pub(crate) queue: Option<Duration>,
    /// Run time after which the task is asked to stop.
    pub(crate) soft: Option<Duration>,
    /// Run time after which the worker is killed.
    pub(crate) hard: Option<Duration>,
    /// Longest processor time.
    pub(crate) cpu: Option<Duration>,
    /// Most memory in bytes; not set for a pool in which the kernel enforces it alone.
    pub(crate) memory: Option<u64>,
}

impl Deadlines {
    #[inline]
    pub(crate) fn are_none(self) -> bool {
        let Self { queue, soft, hard, cpu, memory } = self;
        queue.or(soft).or(hard).or(cpu).is_none() && memory.is_none()
    }

    /// Returns these limits, and those of `default` where there is none.
    pub(crate) fn or(self, default: Self) -> Self {
        Self {
            queue: self.queue.or(default.queue),
            soft: self.soft.or(default.soft),
            hard: self.hard.or(default.hard),
            cpu: self.cpu.or(default.cpu),
            memory: self.memory.or(default.memory),
        }
    }
}

/// The effective deadlines of a task that has at least one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskDeadlines {
    pub(crate) limits: Deadlines,
    /// The limit on memory that the task itself has, and not its pool.
    pub(crate) own_memory: Option<u64>,
    pub(crate) submitted: Monotonic,
}

impl TaskDeadlines {
    /// Returns `None` without any deadline. With a soft deadline and no hard one, the task is
    /// killed `grace` after the soft deadline.
    pub(crate) fn new(mut limits: Deadlines, grace: Duration) -> Option<Self> {
        if limits.are_none() {
            return None;
        }
        let Deadlines { soft, hard, .. } = limits;
        limits.hard = hard.or_else(|| soft.map(|soft| soft.saturating_add(grace)));
        Some(Self { limits, own_memory: None, submitted: clock::now() })
    }

    /// Returns the part that the worker is sent.
    pub(crate) fn run_limits(&self) -> RunLimits {
        RunLimits::new(self.limits.soft, self.limits.hard)
    }
}
