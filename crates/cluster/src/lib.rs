//! Runs the tasks of a pool on many machines, over NATS JetStream.
//!
//! Invariants:
//! - A task is executed at least once, and has exactly one recorded outcome.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), expect(dead_code, reason = "only tests read dead letters so far"))]

mod client;
mod connection;
mod error;
mod input_hash;
mod message;
mod names;
mod needs;
mod node;
mod overview;
mod payload;
mod publisher;
mod setup;

pub use client::{
    Batch, Cluster, ClusterAbortOnDrop, ClusterBuilder, ClusterHandle, ClusterMap,
    ClusterMapUnordered, ClusterSubmitFuture, ClusterTask,
};
pub use error::ClusterError;
pub use message::NodeStatus;
pub use names::{ItemId, NameError, Origin, Priority, Queue, TaskKey};
pub use needs::Needs;
pub use node::{Node, NodeBuilder, RunningNode};
pub use overview::{ClusterStatus, LaneStatus};
