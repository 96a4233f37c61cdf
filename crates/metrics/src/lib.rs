//! Metrics of pools: counts, distributions of times, failures, workers, and slow tasks.
//!
//! A [`PoolSnapshot`] is the state of one pool at one moment. It is plain data: it can be printed,
//! compared, and passed to another process with serde. A [`Distribution`] summarizes a kind of
//! time, such as the time that tasks waited. A [`WorkerSnapshot`] tells what one slot's processes
//! have done.
//!
//! ```
//! use brigade_metrics::{FailureKind, PoolSnapshot};
//!
//! let snapshot = PoolSnapshot::example(2);
//! assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.cancelled + snapshot.pending);
//! assert_eq!(snapshot.failures[&FailureKind::Panicked], 2);
//! assert!(snapshot.run_time.p50 <= snapshot.run_time.p99);
//! ```
//!
//! Invariants:
//! - In each snapshot, `enqueued = finished + cancelled + pending`, and `finished = succeeded` plus
//!   all failures. The items of a map count one by one.
//! - The crate reads no clock, starts no thread, and uses no other crate of the workspace.

#![forbid(unsafe_code)]

mod distribution;
mod example;
pub mod export;
mod failure;
mod history;
mod label;
mod seconds;
mod snapshot;
mod task;
mod worker;

pub use distribution::Distribution;
pub use failure::{Failure, FailureKind};
pub use history::HistoryPoint;
pub use label::LabelSnapshot;
pub use snapshot::{PoolSnapshot, PoolState};
pub use task::{RunningTask, SlowTask};
pub use worker::{Shares, WorkerSnapshot, WorkerState};
