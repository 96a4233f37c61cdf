//! The client: submits tasks to a cluster, and receives their outcomes.

mod backend;
mod batch;
mod builder;
mod cluster;
mod cursor;
mod dead_letters;
mod driver;
mod failure;
mod follower;
mod machine;
mod map;
mod open_batch;
mod prepare;
mod purge;
mod record;
mod requests;
mod search;
mod settings;
mod shared;
mod submission;
mod task;
mod window;

pub use batch::Batch;
pub use builder::ClusterBuilder;
pub use cluster::Cluster;
pub use dead_letters::DeadLetters;
pub use map::{ClusterMap, ClusterMapUnordered};
pub use task::ClusterTask;

use backend::Submitting;
use record::Facts;

/// The handle of a task on a cluster; see [`brigade_task::Handle`].
///
/// If its [`Cluster`] is dropped first, the outcome is
/// [`Disconnected`](brigade_task::TaskErrorKind::Disconnected). The state is
/// [`Queued`](brigade_task::TaskState::Queued) until there is an outcome, because nodes do not
/// report when they start a task.
pub type ClusterHandle<R> = brigade_task::Handle<R, Facts>;

/// A handle that ends its task when it is dropped; returned by
/// [`abort_on_drop`](brigade_task::Handle::abort_on_drop).
pub type ClusterAbortOnDrop<R> = brigade_task::AbortOnDrop<R, Facts>;

/// The submission of a task as a future; returned by [`Cluster::submit_async`] and
/// [`ClusterTask::submit_async`].
pub type ClusterSubmitFuture<A, R> = brigade_task::SubmitFuture<A, R, Submitting>;

#[cfg(test)]
mod tests;
