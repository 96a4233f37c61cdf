//! Workers of a pool.

use serde::{Deserialize, Serialize};

use crate::{RunningTask, SlowTask};

/// The record of one slot's processes, and the state of the present one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WorkerSnapshot {
    /// Number of the slot, from 0.
    pub slot: u32,
    /// Number of the slot's present or last process, counted from 1; 0 if it never had one.
    pub generation: u32,
    /// Process id, if the slot has a process.
    pub pid: Option<u32>,
    /// State of the slot.
    pub state: WorkerState,
    /// The task that the worker runs.
    pub running: Option<RunningTask>,
    /// Number of tasks that the slot's workers have finished, failed ones included.
    pub tasks: u64,
    /// Number of tasks that failed in the slot's workers.
    pub failures: u64,
    /// Number of times that a process was replaced by another.
    pub restarts: u64,
    /// Bytes of arguments that were sent to the slot's workers.
    pub bytes_in: u64,
    /// Bytes of results that the slot's workers sent.
    pub bytes_out: u64,
    /// The use of the time in which the slot had a process.
    pub shares: Shares,
    /// The slowest tasks, longest first.
    pub slowest: Vec<SlowTask>,
}

/// The state of a worker's slot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerState {
    /// The slot has no process.
    #[default]
    Vacant,
    /// The process starts.
    Starting,
    /// The worker waits for tasks.
    Idle,
    /// The worker has tasks.
    Busy,
    /// The worker is about to end.
    Stopping,
}

impl WorkerState {
    /// Returns its name, as in the exported metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vacant => "vacant",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Busy => "busy",
            Self::Stopping => "stopping",
        }
    }
}

/// The use of the time in which a slot had a process, as parts of 1. All are 0 if it never had one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Shares {
    /// Starting the process.
    pub start: f64,
    /// Running the initializer.
    pub initialize: f64,
    /// Waiting for tasks.
    pub wait: f64,
    /// Running tasks.
    pub run: f64,
    /// Ending, from the request or the kill until the process was gone.
    pub exit: f64,
}
