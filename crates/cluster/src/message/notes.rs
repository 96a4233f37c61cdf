//! Small messages: the history of a task, dead letters, requests to end tasks, the manifest of a
//! batch, and the status of a node.

use serde::{Deserialize, Serialize};

use super::impl_head_only;
use crate::names::TaskKey;

/// An entry in the history of a task: a delivery that ended without an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReturnedMessage {
    /// Name of the node.
    pub(crate) node: String,
    pub(crate) incident: Incident,
    /// Number of the delivery that ended this way, counted from 1.
    pub(crate) delivery: u64,
    /// Milliseconds since 1970, by the node's clock. Only for display.
    pub(crate) at: u64,
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
    pub(crate) history: Vec<ReturnedMessage>,
    /// Name of the node that gave it up.
    pub(crate) node: String,
    /// Milliseconds since 1970, by the node's clock. Only for display.
    pub(crate) at: u64,
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

impl_head_only!(ReturnedMessage, DeadLetter, CancelMessage, Manifest, NodeStatus);
