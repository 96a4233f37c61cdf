//! The message by which a client submits a task or a chunk of a map.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Items, MessageError, from_bytes, to_bytes};
use crate::names::TaskKey;

/// A task, or a chunk of a map with several items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskMessage {
    pub(crate) head: TaskHead,
    pub(crate) body: Body,
}

/// The settings of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TaskHead {
    pub(crate) key: TaskKey,
    /// Name of the function, as in its `Task`.
    pub(crate) name: String,
    pub(crate) label: Option<String>,
    /// Number of items: 1 for a single task.
    pub(crate) items: u32,
    /// `true` for a chunk of a map, even if it has one item.
    pub(crate) is_chunk: bool,
    /// Limit of the run time of each item.
    pub(crate) deadline: Option<Duration>,
    /// Run time after which an item is asked to stop.
    pub(crate) soft_deadline: Option<Duration>,
    /// Deaths of workers that are retried.
    pub(crate) retries: u32,
    /// Deaths, of nodes and workers together, after which the task is given up.
    pub(crate) max_deaths: u32,
    /// `true` if the client cannot know whether the task has been run, because it continues a
    /// batch. A node then looks for an outcome first.
    pub(crate) may_be_done: bool,
    /// Milliseconds since 1970 at the submission, by the client's clock. Only for display.
    pub(crate) submitted_at: u64,
    /// Object with the items, if they are too large for the message.
    stored: Option<StoredBody>,
}

/// The arguments of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Body {
    Inline(Items),
    Stored(StoredBody),
}

/// Items in the object store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredBody {
    /// Name of the object in the bucket of the queue.
    pub(crate) object: String,
    /// Number of bytes of the object.
    pub(crate) length: u64,
}

impl TaskHead {
    /// Returns the head of a task with the default settings.
    pub(crate) fn new(key: TaskKey, name: impl Into<String>) -> Self {
        Self {
            key,
            name: name.into(),
            label: None,
            items: 1,
            is_chunk: false,
            deadline: None,
            soft_deadline: None,
            retries: 0,
            max_deaths: Self::MAX_DEATHS,
            may_be_done: false,
            submitted_at: 0,
            stored: None,
        }
    }

    /// The default of `max_deaths`: one death may be bad luck, the third one is the task's doing.
    pub(crate) const MAX_DEATHS: u32 = 3;
}

impl TaskMessage {
    pub(crate) fn to_bytes(&self) -> Result<Bytes, MessageError> {
        match &self.body {
            Body::Inline(items) => to_bytes(&self.head, items.as_bytes()),
            Body::Stored(stored) => {
                let head = TaskHead { stored: Some(stored.clone()), ..self.head.clone() };
                to_bytes(&head, &[])
            }
        }
    }

    pub(crate) fn from_bytes(message: &Bytes) -> Result<Self, MessageError> {
        let (mut head, body) = from_bytes::<TaskHead>(message)?;
        let body = match head.stored.take() {
            Some(_) if !body.is_empty() => {
                return Err(MessageError::malformed("it has both items and an object"));
            }
            Some(stored) => Body::Stored(stored),
            None => Body::Inline(Items::from_bytes(body)),
        };
        Ok(Self { head, body })
    }
}
