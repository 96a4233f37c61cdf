//! A task that the driver holds, with everything that its actions need.

use async_nats::Subject;
use brigade_task::Retry;
use bytes::Bytes;

use super::machine::Facts;
use super::runs::RunOutcome;
use crate::message::{Body, DeliveryId, History, Items, TaskMessage};
use crate::names::{Lane, TaskKey};

/// A task between its delivery and its acknowledgment.
#[derive(Debug)]
pub(super) struct HeldTask {
    pub(super) key: TaskKey,
    pub(super) lane: Lane,
    pub(super) delivery: DeliveryId,
    /// The subject by which the task is acknowledged.
    pub(super) reply: Subject,
    /// The whole message, for the dead letter.
    pub(super) payload: Bytes,
    /// The task, or the reason why its message cannot be read.
    pub(super) task: Result<TaskMessage, String>,
    /// The hash of the types that the client gives the function; 0 if it is unknown.
    pub(super) types: u64,
    /// The items, once they are here.
    pub(super) inputs: Option<Items>,
    pub(super) outcome: Option<RunOutcome>,
    /// The history, as far as the driver has seen it.
    pub(super) history: History,
    /// Object of the outcome, which is removed if another outcome was first.
    pub(super) stored_outcome: Option<Body>,
}

impl HeldTask {
    /// Returns the properties that the machine decides by.
    pub(super) fn facts(&self, is_known: impl FnOnce(&str) -> bool) -> Facts {
        match &self.task {
            Ok(TaskMessage { head, .. }) => Facts {
                is_readable: true,
                is_known: is_known(&head.name),
                retry: head.run.retry,
                max_deaths: head.run.max_deaths.into(),
                may_be_done: head.may_be_done,
            },
            // Another version of this program may understand it.
            Err(_) => Facts {
                is_readable: false,
                is_known: false,
                retry: Retry::of(0),
                max_deaths: u64::MAX,
                may_be_done: false,
            },
        }
    }

    pub(super) fn label(&self) -> Option<&str> {
        self.task.as_ref().ok()?.head.label.as_deref()
    }

    pub(super) fn items(&self) -> u32 {
        self.task.as_ref().map_or(1, |task| task.head.items)
    }

    /// Returns the number of attempts before this delivery, on all nodes.
    pub(super) fn earlier_attempts(&self) -> u32 {
        self.history.attempts_before(self.delivery)
    }

    /// Returns the number of the attempt that this delivery is.
    pub(super) fn attempt(&self) -> u32 {
        self.earlier_attempts().saturating_add(1)
    }

    /// Returns the object of the arguments, which is removed once there is an outcome.
    pub(super) fn stored_arguments(&self) -> Option<&Body> {
        let body = &self.task.as_ref().ok()?.body;
        matches!(body, Body::Stored(_)).then_some(body)
    }
}
