//! The state of a pool at one moment.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Distribution, Failure, FailureKind, HistoryPoint, LabelSnapshot, SlowTask, WorkerSnapshot,
    seconds,
};

/// The state of a pool at one moment, and the record of its past.
///
/// All numbers belong to the same moment: `enqueued = finished + cancelled + pending`,
/// `pending = queued + running`, and `finished = succeeded` plus all failures. The items of a map
/// count one by one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PoolSnapshot {
    /// Number of the pool in this process, counted from 1.
    pub pool: u64,
    /// Name of the pool, or empty.
    pub name: String,
    /// Name of the node of a cluster whose pool it is. A label of all its metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Time since the pool was built.
    #[serde(with = "seconds")]
    pub age: Duration,
    /// State of the pool.
    pub state: PoolState,
    /// Number of tasks that were accepted.
    pub enqueued: u64,
    /// Number of tasks that have an outcome and were not cancelled.
    pub finished: u64,
    /// Number of tasks that were cancelled before they started.
    pub cancelled: u64,
    /// Number of tasks without an outcome.
    pub pending: u64,
    /// Number of tasks that no worker has begun; some of them may be assigned to a worker already.
    pub queued: u64,
    /// Number of tasks that workers have begun.
    pub running: u64,
    /// Largest value of `queued` so far.
    pub max_queue_depth: u64,
    /// Number of tasks that returned a value.
    pub succeeded: u64,
    /// Number of failed tasks by kind. Kinds that did not occur are missing.
    pub failures: BTreeMap<FailureKind, u64>,
    /// The last 20 failures, latest first.
    pub recent_failures: Vec<Failure>,
    /// Number of attempts that ended; more than `finished` if tasks were retried.
    pub attempts: u64,
    /// Bytes of arguments that were sent to workers.
    pub bytes_in: u64,
    /// Bytes of results that workers sent.
    pub bytes_out: u64,
    /// Times from submission until a worker began the task.
    pub queue_time: Distribution,
    /// Times from the start of a worker's process until it was ready for tasks.
    pub start_time: Distribution,
    /// Times for which tasks ran.
    pub run_time: Distribution,
    /// Times from the end of a task's run until the host had its outcome.
    pub delivery_time: Distribution,
    /// All slots, in their order.
    pub workers: Vec<WorkerSnapshot>,
    /// Labels in order of their first use, at most 64, and then the others together.
    pub labels: Vec<LabelSnapshot>,
    /// The slowest tasks of the pool, longest first.
    pub slowest: Vec<SlowTask>,
    /// Number of worker processes that replaced another one.
    pub restarts: u64,
    /// Number of workers that were started by executing a program.
    pub executed: u64,
    /// Number of workers that were forked from a server of the pool.
    pub forked: u64,
    /// Process id of the server from which workers are forked, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_server: Option<u32>,
    /// Number of worker processes that died, for whatever reason.
    pub deaths: u64,
    /// The last ten minutes, oldest first. Seconds in which nothing happened are missing.
    pub history: Vec<HistoryPoint>,
}

/// The state of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PoolState {
    /// The pool accepts tasks.
    #[default]
    Open,
    /// The pool is being shut down.
    ShuttingDown,
    /// The pool has ended.
    Ended,
    /// The pool cannot start workers anymore.
    Broken {
        /// Reason for the failure.
        reason: String,
    },
}
