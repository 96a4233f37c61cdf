//! The message by which a client submits a task or a chunk of a map.

use std::time::Duration;

use brigade_task::Retry;
use serde::{Deserialize, Serialize};

use super::body::Message;
use crate::names::TaskKey;

/// A task, or a chunk of a map with several items.
pub(crate) type TaskMessage = Message<TaskHead>;

/// The settings of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskHead {
    pub(crate) key: TaskKey,
    /// Name of the function, as in its `Key`.
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    /// Number of items: 1 for a single task.
    pub(crate) items: u32,
    /// `true` for a chunk of a map, even if it has one item.
    pub(crate) is_chunk: bool,
    pub(crate) run: RunSettings,
    /// `true` if the client cannot know whether the task has been run, because it continues a
    /// batch. A node then looks for an outcome first.
    pub(crate) may_be_done: bool,
    /// `true` if the node tells the client that it has begun the task.
    pub(crate) announces_start: bool,
    /// Milliseconds since 1970 at the submission, by the client's clock. Only for display.
    pub(crate) submitted_at: u64,
}

/// The limits of a task, or of each item of a chunk, and when it runs again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunSettings {
    pub(crate) deadline: Option<Duration>,
    /// Run time after which it is asked to stop.
    pub(crate) soft_deadline: Option<Duration>,
    /// The attempts, and the pauses between them.
    pub(crate) retry: Retry,
    pub(crate) retries_panics: bool,
    /// `true` if it runs again after its function has returned an `Err`.
    pub(crate) retries_errors: bool,
    /// Deaths, of nodes and workers together, after which the task is given up.
    pub(crate) max_deaths: u32,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            deadline: None,
            soft_deadline: None,
            retry: Retry::of(0),
            retries_panics: false,
            retries_errors: false,
            // One death may be bad luck, the third one is the task's doing.
            max_deaths: 3,
        }
    }
}
