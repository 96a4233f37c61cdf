//! The recent past of a pool.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

/// The events of one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryPoint {
    /// Time since the begin of the second.
    #[serde(with = "seconds")]
    pub ago: Duration,
    /// Number of tasks that finished, failed ones included.
    pub finished: u64,
    /// Number of tasks that failed.
    pub failed: u64,
    /// Largest number of tasks that were queued at once.
    pub max_queued: u64,
    /// Largest number of workers that had tasks at once.
    pub busy: u32,
}
