//! The resources that a task with limits has used.

use std::time::Duration;

use brigade_sandbox::Limit;
use brigade_scheduler::{TaskRef, Usage};
use brigade_wire::Attempt;

use crate::deadlines::Deadlines;
use crate::error::TaskErrorKind;

/// The usage of a task, as far as was looked.
pub(in crate::drive) struct Measured {
    /// The attempt, and the number of items that have begun.
    pub(in crate::drive) what: (TaskRef, Attempt, u64),
    /// The clock of the worker at the first look.
    pub(in crate::drive) clock: Duration,
    pub(in crate::drive) usage: Usage,
}

/// Returns the failure of a task that was killed because it had used this much.
pub(in crate::drive) fn exceeded(limits: Deadlines, usage: Option<Usage>) -> TaskErrorKind {
    let usage = usage.unwrap_or(Usage { cpu: Duration::ZERO, is_new: true, memory: 0 });
    let (limit, used) = match limits.cpu {
        Some(cpu) if usage.cpu >= cpu => (Limit::CpuTime(cpu), Limit::CpuTime(usage.cpu)),
        _ => (Limit::Memory(limits.memory.unwrap_or_default()), Limit::Memory(usage.memory)),
    };
    TaskErrorKind::LimitExceeded { limit, used: Some(used) }
}
