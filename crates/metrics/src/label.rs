//! Tasks of one label.

use serde::{Deserialize, Serialize};

use crate::Distribution;

/// The record of all tasks with one label.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LabelSnapshot {
    /// The label, or [`OTHER`](Self::OTHER) for all labels together for which there was no room.
    pub label: String,
    /// Number of tasks that finished, failed ones included.
    pub finished: u64,
    /// Number of tasks that failed.
    pub failed: u64,
    /// Times for which tasks ran.
    pub run_time: Distribution,
    /// Times from submission until a worker began the task.
    pub queue_time: Distribution,
}

impl LabelSnapshot {
    /// Stands for all labels for which there was no room.
    pub const OTHER: &'static str = "(other)";
}
