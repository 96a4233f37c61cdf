//! The client: submits tasks to a cluster, and receives their outcomes.

mod abort_on_drop;
mod batch;
mod builder;
mod callbacks;
mod cell;
mod cluster;
mod cursor;
mod dead_letters;
mod driver;
mod executor;
mod failure;
mod follower;
mod handle;
mod inbox;
mod machine;
mod map;
mod prepare;
mod purge;
mod search;
mod server;
mod shared;
mod submission;
mod submit_future;
mod task;
mod window;

pub use abort_on_drop::ClusterAbortOnDrop;
pub use batch::Batch;
pub use builder::ClusterBuilder;
pub use cluster::Cluster;
pub use dead_letters::DeadLetters;
pub use handle::ClusterHandle;
pub use map::{ClusterMap, ClusterMapUnordered};
pub use submit_future::ClusterSubmitFuture;
pub use task::ClusterTask;

#[cfg(test)]
mod tests;
