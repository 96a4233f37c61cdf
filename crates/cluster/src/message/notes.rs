//! Small messages: dead letters, requests to end tasks, the manifest of a batch, and the status of
//! a node.

use serde::{Deserialize, Serialize};

use super::{History, impl_head_only};
use crate::names::{Lane, TaskKey};

/// A task that was given up, with everything that is needed to submit it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeadLetterMessage {
    pub(crate) key: TaskKey,
    pub(crate) lane: Lane,
    /// The task's message.
    pub(crate) message: Vec<u8>,
    /// Number of deaths of nodes and workers.
    pub(crate) deaths: u64,
    pub(crate) history: History,
    /// Name of the node that gave it up.
    pub(crate) node: String,
}

/// Requests that a task is not run, because its outcome has been recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CancelMessage {
    pub(crate) key: TaskKey,
    /// `true` if a worker that runs the task is to be killed.
    pub(crate) kill: bool,
}

/// Tells a client that a node has begun a task. Not stored, and lost if the client is away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartMessage {
    pub(crate) item: String,
    /// The name that was given to the node, or else that of its machine.
    pub(crate) host: String,
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
    /// Number of workers that run a task.
    pub running: u32,
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

impl_head_only!(DeadLetterMessage, CancelMessage, StartMessage, Manifest, NodeStatus);
