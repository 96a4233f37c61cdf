//! Runs the tasks of a pool on many machines, over NATS JetStream.
//!
//! Invariants:
//! - A task is executed at least once, and has exactly one recorded outcome.

#![forbid(unsafe_code)]
#![expect(dead_code, reason = "client and node, which use the rest, are being built")]

mod connection;
mod error;
mod publisher;

pub use error::ClusterError;
