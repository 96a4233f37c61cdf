//! The executor of Brigade: runs typed functions in worker processes.
//!
//! Most users depend on the facade crate `brigade`, which re-exports everything here. The main
//! types are [`Pool`] (built by a [`PoolBuilder`]), [`Handle`] (one submitted task), [`TaskError`]
//! (why a task returned no value) and [`SubmitError`] (why a task was refused; it contains the
//! argument).
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
//! Internally there are two layers: the crate `brigade-scheduler` makes every decision and does
//! nothing else; `drive` has the threads that carry the decisions out.
//!
//! Invariants:
//! - A task accepted by `submit` gets exactly one outcome, whatever dies and whatever is dropped.
//! - A crash fails only the task that was running; tasks that have not started go back to the front
//!   of the queue.
//! - Every wait for a worker is bounded, every restart is counted against a budget, and every
//!   escalation ends in SIGKILL and a reap.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod abort_on_drop;
#[cfg(feature = "futures")]
mod as_stream;
mod buffers;
mod builder;
mod bytes;
mod callbacks;
mod cell;
mod chunk;
mod completed;
mod completion_queue;
mod config;
#[cfg(feature = "cores")]
mod cores;
mod deadlines;
mod drive;
mod emitted;
mod error;
mod executor;
mod function_ref;
mod handle;
mod keyed;
#[cfg(feature = "status")]
mod live_view;
mod map;
#[cfg(not(feature = "cores"))]
mod no_cores;
mod payload;
mod pool;
mod run_record;
pub mod stream;
mod submit_future;
mod sync;
mod task;
mod task_span;
#[cfg(feature = "trace-export")]
mod timeline;
mod wait;
mod waiting;
mod wake_queue;

#[cfg(not(feature = "cores"))]
use no_cores as cores;

pub use abort_on_drop::AbortOnDrop;
#[cfg(feature = "futures")]
pub use as_stream::AsStream;
pub use brigade_scheduler::{Shutdown, ShutdownReport};
pub use brigade_supervisor::Stdio;
pub use brigade_sys::process::Exit;
pub use brigade_wire::codec::Encoded;
pub use brigade_wire::{Attempt, TaskId, WorkerId};
pub use brigade_worker::Task;
#[doc(hidden)]
pub use brigade_worker::{signature, types_of};
pub use builder::PoolBuilder;
pub use completed::{AsCompleted, as_completed};
pub use config::{CONNECTORS, Link};
pub use error::{PoolError, SubmitError, SubmitErrorKind, TaskError, TaskErrorKind, TimedOut};
pub use executor::{Executor, TaskHandle};
pub use handle::{Handle, TaskState};
#[cfg(feature = "status")]
pub use live_view::StatusSource;
pub use map::{Map, MapUnordered};
pub use pool::Pool;
pub use submit_future::SubmitFuture;
pub use task::TaskBuilder;
pub use wait::{Until, Waited, wait};

/// Records what a pool's scheduler receives and decides, so that a run can be replayed without
/// processes.
///
/// [`PoolBuilder::journal`] records a journal, and [`replay`](journal::replay) replays it.
#[cfg(feature = "journal")]
pub mod journal {
    pub use brigade_scheduler::journal::{Replay, ReplayError, replay};
}
