//! The other nodes of the queue, as far as they tell what they can run.

use std::time::Duration;

use super::held_task::HeldTask;
use crate::message::{NodeStatus, version_of};
use crate::overview::answers;
use crate::server::Server;

/// Time for the answers. A node answers at once.
const PERIOD: Duration = Duration::from_millis(500);

impl Server {
    /// Returns `true` if a node of this queue can run a task that this one cannot: it knows the
    /// function, or speaks the version of the task's message.
    pub(super) async fn has_peer_for(&self, task: Capability) -> bool {
        let answers = answers(&self.jetstream.client(), self.names(), PERIOD).await;
        answers.unwrap_or_default().iter().any(|answer| match &task {
            Capability::Version(version) => version_of(answer) == Some(*version),
            Capability::Function(name) => NodeStatus::from_bytes(answer)
                .is_ok_and(|node| !node.is_draining && node.tasks.contains(name)),
        })
    }
}

/// The ability that a node needs for a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Capability {
    /// To read messages of this version.
    Version(u8),
    /// To run the function of this name.
    Function(String),
}

impl Capability {
    /// Returns the ability that a task needs; `None` if no node can read it.
    pub(super) fn of(task: &HeldTask) -> Option<Self> {
        match &task.task {
            Ok(task) => Some(Self::Function(task.head.name.clone())),
            Err(_) => version_of(&task.payload).map(Self::Version),
        }
    }
}
