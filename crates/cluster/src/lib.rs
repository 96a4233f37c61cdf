//! Runs the tasks of a pool on many machines, over NATS JetStream.
//!
//! Programs can use this crate alone, or as `brigade::cluster` in the facade `brigade`.
//!
//! A [`Cluster`] submits typed tasks to a queue, and a [`Node`] on any machine runs them in a local
//! pool, with all that the pool guarantees. A [`ClusterHandle`] is one submitted task, and a
//! [`Batch`] is a named set of them, which a client that has died continues under the same name.
//! [`Requirements`] and [`Priority`] decide which node runs a task, and when. A task that kills
//! workers or nodes is given up, and becomes a [`DeadLetter`].
//!
//! Client and nodes share the keys of their functions:
//!
//! ```no_run
//! use brigade::Key;
//! use brigade_cluster::{Cluster, Node};
//!
//! static SQUARE: Key<u64, u64> = Key::new("square/1", |x| x * x);
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init();
//!     let url = "nats://127.0.0.1:4222";
//!     if std::env::args().any(|argument| argument == "node") {
//!         Node::builder().url(url).register(&SQUARE).workers(2).run()?;
//!         return Ok(());
//!     }
//!     let cluster = Cluster::connect(url)?;
//!     assert_eq!(cluster.submit(&SQUARE, 7)?.wait()?, 49);
//!     for square in cluster.batch("squares")?.map(&SQUARE, 0..1_000) {
//!         println!("{}", square?);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! [Clusters](https://github.com/brigade-rs/brigade/blob/main/docs/cluster.md) says which
//! promise rests on which setting of the server.

//! # Invariants
//! - A task is executed at least once, and has exactly one recorded outcome: the first.
//! - A task leaves the queue only after its outcome was recorded.
//! - Nothing rests on acknowledgments, on message ids, or on a clock that machines share.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-cluster/latest")]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "node"),
    expect(dead_code, reason = "nodes read what clients write, and the other way round")
)]

mod client;
mod clock;
mod connection;
mod dead_letter;
mod endpoint;
mod error;
mod input_hash;
mod message;
mod names;
#[cfg(feature = "node")]
mod node;
mod overview;
mod payload;
mod publisher;
mod queue_options;
mod requirements;
mod server;
mod setup;
mod stored_message;
mod task_name;
#[cfg(test)]
mod tests;

pub use client::{
    Batch, Cluster, ClusterAbortOnDrop, ClusterBuilder, ClusterHandle, ClusterMap,
    ClusterMapUnordered, ClusterSubmitFuture, ClusterTask, DeadLetters,
};
pub use dead_letter::DeadLetter;
pub use endpoint::Endpoint;
pub use error::ClusterError;
#[doc(hidden)]
pub use message::__speak_version;
pub use message::{Incident, NodeStatus, Report};
pub use names::{ItemId, NameError, Origin, Priority, Queue, TaskKey};
#[cfg(feature = "node")]
pub use node::{Node, NodeBuilder, RunningNode};
pub use overview::{ClusterMonitor, ClusterStatus, LaneStatus};
pub use requirements::Requirements;
