//! The executor of Brigade: runs typed functions in worker processes.
//!
//! Most users take it through the facade crate `brigade`, which re-exports all of it. The principal types are
//! [`Pool`] (made by a [`Builder`]), [`Handle`] (one submitted task), [`TaskError`] (why a task has no value)
//! and [`SubmitError`] (why a task was not taken, with its argument).
//!
//! ```no_run
//! fn square(x: u64) -> u64 {
//!     x * x
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade_worker::init(); // the first line of main: in a worker process it never returns
//!     let pool = brigade_pool::Pool::builder().workers(2).build()?;
//!     let handle = pool.submit(square, 7)?;
//!     assert_eq!(handle.wait()?, 49);
//!     pool.shutdown()?;
//!     Ok(())
//! }
//! ```
//!
//! Inside there are two layers: `machine`, which decides and does nothing, and `drive`, whose threads
//! do and decide nothing.
//!
//! Invariants:
//! - A task accepted by `submit` gets exactly one outcome, whatever dies, and whatever is dropped.
//! - A crash fails only the task that ran; tasks not yet begun go back to the queue's front.
//! - No wait without a bound, no restart without a budget; every ladder ends in SIGKILL and a reap.

#![forbid(unsafe_code)]

mod arrivals;
mod awaited;
mod builder;
mod callbacks;
mod callee;
mod cell;
mod chunk;
mod completed;
mod config;
mod contained;
mod cores;
mod drive;
mod error;
mod handle;
pub mod journal;
mod limits;
mod machine;
mod map;
mod payload;
mod pool;
mod setup;
mod surroundings;
mod task;
mod wait;

pub use brigade_sys::process::Exit;
pub use brigade_wire::{Attempt, TaskId};
pub use builder::Builder;
pub use completed::{AsCompleted, as_completed};
pub use config::Link;
pub use error::{PoolError, SubmitError, SubmitErrorKind, TaskError, TaskErrorKind, TimedOut};
pub use handle::{Handle, TaskState};
pub use machine::Shutdown;
pub use map::{Map, MapUnordered};
pub use pool::{Pool, ShutdownReport};
pub use surroundings::Stdio;
pub use task::TaskBuilder;
pub use wait::{Until, Waited, wait};
