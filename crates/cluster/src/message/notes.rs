//! Small messages: the history of a task, dead letters, requests to end tasks, the manifest of a
//! batch, and the status of a node.

use serde::{Deserialize, Serialize};

use super::impl_head_only;
use crate::names::TaskKey;

/// Maximum number of reports in a history.
const REPORT_LIMIT: usize = 32;

/// The history of a task: its deliveries that ended without an outcome. Each message has all of
/// it, so that the last one is enough.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// Number of deliveries after which a node returned the task although nothing had died.
    pub(crate) handed_back: u64,
    /// Number of those after which the node did not know the function.
    pub(crate) unknown: u64,
    /// Number of deliveries in which the worker died.
    pub(crate) worker_deaths: u64,
    /// The latest of them.
    pub(crate) reports: Vec<Report>,
}

/// A delivery that ended without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Name of the node.
    pub(crate) node: String,
    pub(crate) incident: Incident,
    /// Number of the delivery that ended this way, counted from 1.
    pub(crate) delivery: u64,
}

/// The reason why a node returned a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Incident {
    /// The node had not begun it, because it drains or has more than it can run.
    HandedBack,
    /// The node does not know the function. A list of those that it knows.
    UnknownTask(Vec<String>),
    /// The worker died that ran it. A description of the death.
    WorkerDied(String),
}

/// A task that was given up, with everything that is needed to submit it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeadLetter {
    pub(crate) key: TaskKey,
    /// The task's message.
    pub(crate) message: Vec<u8>,
    pub(crate) reason: String,
    pub(crate) history: History,
    /// Name of the node that gave it up.
    pub(crate) node: String,
}

impl History {
    /// Returns the number of deaths of nodes and workers before a delivery, which is counted from
    /// 1. Deliveries that nobody reports ended with the death of their node, or with its silence.
    pub(crate) fn deaths_before(&self, delivery: u64) -> u64 {
        delivery.saturating_sub(1).saturating_sub(self.handed_back)
    }

    /// Adds a delivery that ended without an outcome.
    pub(crate) fn add(&mut self, report: Report) {
        match report.incident {
            Incident::HandedBack => self.handed_back += 1,
            Incident::UnknownTask(_) => {
                self.handed_back += 1;
                self.unknown += 1;
            }
            Incident::WorkerDied(_) => self.worker_deaths += 1,
        }
        if self.reports.len() >= REPORT_LIMIT {
            self.reports.remove(0);
        }
        self.reports.push(report);
    }
}

/// Requests that a task is not run, because its outcome has been recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CancelMessage {
    pub(crate) key: TaskKey,
    /// `true` if a worker that runs the task is to be killed.
    pub(crate) kill: bool,
}

/// Properties of a batch that every run of its program must share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// Name of the function.
    pub(crate) name: String,
    /// Number of items of a chunk, which fixes in which outcome an item is found.
    pub(crate) chunk: u32,
}

/// The state of a node, as it describes itself on request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NodeStatus {
    /// Name of the node.
    pub name: String,
    /// Version of Brigade.
    pub version: String,
    /// Number of workers.
    pub workers: u32,
    /// Number of tasks that are running or waiting in the node.
    pub held: u32,
    /// Number of outcomes that the node has recorded.
    pub recorded: u64,
    /// Number of outcomes that the server refused because the task had one already.
    pub refused: u64,
    /// Number of tasks that the node has handed back.
    pub returned: u64,
    /// Number of tasks that the node has given up.
    pub given_up: u64,
    /// Number of workers that died.
    pub worker_deaths: u64,
    /// The requirements that the node meets.
    pub offers: String,
    /// Names of the functions that the node knows.
    pub tasks: Vec<String>,
    /// `true` if the node takes no more tasks.
    pub is_draining: bool,
    /// Seconds since the node started.
    pub uptime_seconds: u64,
}

impl_head_only!(History, DeadLetter, CancelMessage, Manifest, NodeStatus);
