//! What the machine is told at the beginning, and what it counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the machine must know about the pool; fixed for its life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Worker slots in the beginning.
    pub(crate) workers: usize,
    /// So many processes are kept although there is nothing to do.
    pub(crate) min_workers: usize,
    /// How long a worker above that number may have nothing to do.
    pub(crate) idle_timeout: Option<Duration>,
    /// How many tasks a process does before it is replaced.
    pub(crate) max_tasks: Option<u64>,
    /// How long a process lives before it is replaced.
    pub(crate) max_age: Option<Duration>,
    /// So many workers may die under one task, whatever its retries.
    pub(crate) quarantine: u32,
    /// Queued tasks that `submit` accepts before it makes callers wait.
    pub(crate) queue_limit: usize,
    /// Most frames under way to one worker, the running one included; the length of its slot table.
    pub(crate) credit: u16,
    /// Worker lives without a single task that are tolerated within `restart_window`.
    pub(crate) restart_limit: u32,
    /// See `restart_limit`.
    pub(crate) restart_window: Duration,
    /// How long each rung of the ladder that ends a worker waits for the next.
    pub(crate) stop_grace: Duration,
}

/// Counters that tell what a pool did, for reports and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) submitted: u64,
    pub(crate) finished: u64,
    pub(crate) cancelled: u64,
    pub(crate) expired: u64,
    pub(crate) failed_by_death: u64,
    pub(crate) killed: u64,
    pub(crate) refused_by_break: u64,
    pub(crate) retried: u64,
    pub(crate) requeued: u64,
    pub(crate) stolen: u64,
    pub(crate) stale_replies: u64,
    /// Processes started in place of others.
    pub(crate) respawned: u64,
    pub(crate) worker_deaths: u64,
}
