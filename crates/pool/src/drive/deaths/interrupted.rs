//! The attempts that a worker's death has interrupted.

use std::time::Duration;

use brigade_scheduler::{InterruptedAttempt, Usage};

/// The attempts that a worker's death interrupted, according to its table.
#[derive(Debug, Clone, Default)]
pub(in crate::drive) struct Interrupted {
    /// Attempts that may have started and have no outcome. A correct worker runs one task at a
    /// time. If it has overwritten its table, all its tasks count as started, so that none is run
    /// twice without permission.
    pub(in crate::drive) attempts: Vec<InterruptedAttempt>,
    /// Time that the task had been running.
    pub(in crate::drive) elapsed: Option<Duration>,
    /// Time limit of the section that the task was in.
    pub(in crate::drive) section_limit: Duration,
    /// The usage of the task when it was last looked at.
    pub(in crate::drive) usage: Option<Usage>,
    /// The pool killed the worker because it broke the protocol.
    pub(in crate::drive) broke_protocol: bool,
}
