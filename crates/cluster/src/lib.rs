//! Runs the tasks of a pool on many machines, over NATS JetStream.
//!
//! Invariants:
//! - A task is executed at least once, and has exactly one recorded outcome.

#![forbid(unsafe_code)]

mod error;

pub use error::ClusterError;
