//! The settings and the counters of the scheduler.

use std::time::Duration;

use brigade_base::Resource;
use serde::{Deserialize, Serialize};

use crate::{KillCause, TaskEnd};

/// The settings of the scheduler, which never change. By default, all of them are off or zero.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Settings {
    /// Initial number of workers that may have tasks at a time. With the spare ones, this is the
    /// number of slots.
    pub workers: usize,
    /// Number of workers that are kept even if there is nothing to do.
    pub min_workers: usize,
    /// Number of workers without a task that are kept beside those that have one.
    pub spare_workers: usize,
    /// Idle time after which a worker above that number is retired.
    pub idle_timeout: Option<Duration>,
    /// Number of tasks after which a worker is replaced.
    pub max_tasks: Option<u64>,
    /// Age at which a worker is replaced.
    pub max_age: Option<Duration>,
    /// Number of workers that may die running one task, regardless of its retries.
    pub quarantine: u32,
    /// Number of queued tasks at which `submit` makes callers wait.
    pub queue_limit: usize,
    /// Maximum number of frames that one worker may have, including the one that it runs; the
    /// length of its table.
    pub credit: u16,
    /// Number of workers that may die within `restart_window` without having done a task.
    pub restart_limit: u32,
    /// See `restart_limit`.
    pub restart_window: Duration,
    /// Time between two steps of the escalation that ends a worker.
    pub stop_grace: Duration,
    /// Age at which a task is reported, and each multiple of it.
    pub slow_after: Option<Duration>,
    /// Number of cores that a worker may use at a time.
    pub cores: u32,
    /// `true` if a worker runs each task in a copy of itself, and prepares the next one after it.
    pub copies: bool,
    /// `true` if a worker has something that no other may use with it, such as cores, and its
    /// successor in the slot gets.
    pub exclusive_slots: bool,
    /// Resources that tasks may need.
    pub resources: Vec<Resource>,
    /// `false` if a worker may pretend that it has not begun the task that it runs.
    pub trusts_workers: bool,
}

impl Settings {
    /// Returns `true` if each task has a process of its own.
    pub fn is_fresh(&self) -> bool {
        self.copies || self.max_tasks == Some(1)
    }
}

/// Counters of a pool, for reports and tests. Each item of a chunk counts as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tasks that were accepted.
    pub submitted: u64,
    /// Outcomes that workers reported.
    pub finished: u64,
    /// Tasks that were cancelled before they started.
    pub cancelled: u64,
    /// Tasks whose queue deadline expired.
    pub expired: u64,
    /// Tasks that ended with their worker, which died on its own or broke the protocol.
    pub failed_by_death: u64,
    /// Running tasks whose worker the pool killed for them or for its shutdown.
    pub killed: u64,
    /// Accepted tasks that failed because the pool broke.
    pub refused_by_break: u64,
    /// Attempts after the first one.
    pub retried: u64,
    /// Tasks that went back from a worker to the queue without having started, except stolen ones.
    pub requeued: u64,
    /// Assignments that went back to the queue for an idle worker.
    pub stolen: u64,
    /// Events of workers that no longer existed.
    pub stale_replies: u64,
    /// Number of workers started as replacements.
    pub respawned: u64,
}

impl Counters {
    /// Counts the end of accepted tasks.
    #[inline]
    pub(crate) fn count(&mut self, end: TaskEnd, tasks: u64) {
        let counter = match end {
            TaskEnd::Reported | TaskEnd::Finished => &mut self.finished,
            TaskEnd::Cancelled => &mut self.cancelled,
            TaskEnd::Expired => &mut self.expired,
            TaskEnd::Died | TaskEnd::Quarantined | TaskEnd::Killed(KillCause::Protocol) => {
                &mut self.failed_by_death
            }
            TaskEnd::Killed(_) => &mut self.killed,
            TaskEnd::Broken => &mut self.refused_by_break,
            // Such a task was not accepted.
            TaskEnd::Closed => return,
        };
        *counter += tasks;
    }
}
