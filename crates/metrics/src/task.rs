//! Single tasks that are worth showing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

/// A task that took long.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SlowTask {
    /// Number of the task.
    pub task: u64,
    /// Label of the task, or empty.
    pub label: String,
    /// Worker that ran it, in the form `3.1` (slot and generation), or `3` for a slot of a runner.
    pub worker: String,
    /// Time for which it ran.
    #[serde(with = "seconds")]
    pub run_time: Duration,
    /// Time since its end.
    #[serde(with = "seconds")]
    pub ago: Duration,
}

/// A task that a worker runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningTask {
    /// Number of the task. For a chunk of a map, that of its first item.
    pub task: u64,
    /// Number of the attempt, counted from 1.
    pub attempt: u32,
    /// Label of the task, or empty.
    pub label: String,
    /// Number of items in a chunk of a map, and 1 for other tasks.
    pub items: u32,
    /// Time since the worker began it.
    #[serde(with = "seconds")]
    pub elapsed: Duration,
}
