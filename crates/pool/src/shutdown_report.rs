//! The report of a shutdown.

use std::time::Duration;

/// Report of a shutdown, from the first call to the end of the last worker. Each item of a map
/// counts as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Number of tasks that a worker finished during the shutdown, with a value or with an error of
    /// their own.
    pub finished: u64,
    /// Number of tasks that were cancelled.
    pub cancelled: u64,
    /// Number of tasks that failed because their worker died on its own during the shutdown.
    pub failed: u64,
    /// Number of tasks that were running when the pool killed their worker.
    pub killed: u64,
    /// Number of workers that were asked to exit.
    pub workers_stopped: u64,
    /// Number of workers that had to be killed.
    pub workers_killed: u64,
    /// Time from the first shutdown call until the pool had ended.
    pub elapsed: Duration,
}
