//! The resources that a task with limits has used.

use std::time::Duration;

use brigade_sandbox::Limit;
use brigade_scheduler::{TaskRef, Usage};
use brigade_wire::Attempt;

use crate::deadlines::Deadlines;
use crate::error::TaskErrorKind;

/// The usage of a task, as far as was looked.
pub(super) struct Measured {
    /// The attempt, and the number of items that have begun.
    pub(super) what: (TaskRef, Attempt, u64),
    /// The clock of the worker at the first look.
    pub(super) clock: Duration,
    pub(super) usage: Usage,
}

/// Returns the failure of a task that was killed because it had used this much.
pub(super) fn exceeded(limits: Option<Deadlines>, usage: Option<Usage>) -> TaskErrorKind {
    let limits = limits.unwrap_or_default();
    let usage = usage.unwrap_or(Usage { cpu: Duration::ZERO, is_new: true, memory: 0 });
    match (limits.cpu, limits.memory) {
        (Some(cpu), _) if usage.cpu >= cpu => TaskErrorKind::LimitExceeded {
            limit: Limit::CpuTime(cpu),
            used: Some(Limit::CpuTime(usage.cpu)),
        },
        (_, memory) => TaskErrorKind::LimitExceeded {
            limit: Limit::Memory(memory.unwrap_or_default()),
            used: Some(Limit::Memory(usage.memory)),
        },
    }
}
