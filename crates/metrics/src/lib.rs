//! Metrics of pools: counts, distributions of times, failures, workers, and slow tasks.
//!
//! Programs can use this crate alone, or as `brigade::metrics` in the facade `brigade`.
//!
//! A [`PoolSnapshot`] is the state of one pool at one moment. It is plain data: it can be printed,
//! compared, and passed to another process with serde. A [`Distribution`] summarizes a kind of
//! time, such as the time that tasks waited. A [`WorkerSnapshot`] tells what one slot's processes
//! have done. [`global`] adds up all pools that the process has made.
//!
//! A [`Recorder`] records what a pool does. It is for those that run tasks; users of a pool call
//! its `snapshot` method.
//!
//! ```
//! use brigade_metrics::PoolSnapshot;
//!
//! let snapshot = PoolSnapshot::default();
//! assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.cancelled + snapshot.pending);
//! assert!(snapshot.run_time.p50 <= snapshot.run_time.p99);
//! ```

//! # Invariants
//! - In each snapshot, `enqueued = finished + cancelled + pending`, and `finished = succeeded` plus
//!   all failures. The items of a map count one by one.
//! - The crate reads no clock, starts no thread, and uses no other crate of the workspace.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-metrics/latest")]
#![forbid(unsafe_code)]

mod distribution;
pub mod export;
mod failure;
mod global;
mod history;
mod label;
mod measurement;
mod recorder;
mod report;
mod seconds;
mod snapshot;
mod task;
mod times;
mod worker;

pub use distribution::Distribution;
pub use failure::{Failure, FailureKind};
pub use global::{GlobalSnapshot, Registry, Source, global};
pub use history::HistoryPoint;
pub use label::LabelSnapshot;
pub use measurement::{Measurement, PoolTimes};
pub use recorder::Recorder;
pub use recorder::run::{Run, Timing};
pub use snapshot::{PoolSnapshot, PoolState};
pub use task::{RunningTask, SlowTask};
pub use times::Times;
pub use worker::{Shares, WorkerSnapshot, WorkerState};

#[cfg(test)]
mod tests;
