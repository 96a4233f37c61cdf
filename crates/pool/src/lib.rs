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

//! # Invariants
//! - A task accepted by `submit` gets exactly one outcome, whatever dies and whatever is dropped.
//! - A crash fails only the task that was running; tasks that have not started go back to the front
//!   of the queue.
//! - Every wait for a worker is bounded, every restart is counted against a budget, and every
//!   escalation ends in SIGKILL and a reap.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-pool/latest")]
#![forbid(unsafe_code)]

mod at_exit;
mod buffers;
mod builder;
mod cell;
mod chunk;
mod config;
#[cfg(feature = "cores")]
mod cores;
mod deadlines;
mod drive;
mod emitted;
mod error;
mod function_ref;
#[cfg(feature = "status")]
mod live_view;
mod map;
mod needs;
#[cfg(not(feature = "cores"))]
mod no_cores;
mod payload;
mod pool;
mod run_record;
pub mod stream;
mod submission;
mod sync;
mod task;
mod task_span;
mod wake_queue;
mod when_full;

#[cfg(not(feature = "cores"))]
use no_cores as cores;

pub use brigade_base::Resource;
pub use brigade_sandbox::{Hold, Layer, Limit, Limits, SandboxReport};
#[cfg(feature = "sandbox")]
pub use brigade_sandbox::{Sandbox, SandboxError};
pub use brigade_scheduler::{Retry, Shutdown, ShutdownReport};
pub use brigade_supervisor::{Start, Stdio};
pub use brigade_sys::process::Exit;
#[cfg(feature = "futures")]
pub use brigade_task::AsStream;
pub use brigade_task::{
    Data, Executor, Function, Indexed, NamedFunction, SubmitError, SubmitErrorKind, TaskError,
    TaskErrorKind, TaskState, TimedOut, Timeout, Until, Untyped, WithInputs, as_completed, wait,
};
pub use brigade_wire::codec::Encoded;
pub use brigade_wire::{Attempt, TaskId, WorkerId};
pub use brigade_worker::Key;
#[doc(hidden)]
pub use brigade_worker::{signature, types_of};
pub use builder::PoolBuilder;
pub use config::{CONNECTORS, Link};
pub use error::PoolError;
#[cfg(feature = "status")]
pub use live_view::StatusSource;
pub use map::{Map, MapUnordered};
pub use pool::Pool;
pub use task::TaskBuilder;

use cell::Facts;
use submission::Submitting;

/// The handle of a task that was submitted to a pool; see [`brigade_task::Handle`].
pub type Handle<R> = brigade_task::Handle<R, Facts>;

/// A handle that ends its task when it is dropped; returned by
/// [`abort_on_drop`](brigade_task::Handle::abort_on_drop).
pub type AbortOnDrop<R> = brigade_task::AbortOnDrop<R, Facts>;

/// The submission of a task as a future; returned by [`Pool::submit_async`] and
/// [`TaskBuilder::submit_async`].
pub type SubmitFuture<A, R> = brigade_task::SubmitFuture<A, R, Submitting>;

/// Handles divided into finished and pending ones; returned by [`wait()`].
pub type Waited<'a, R> = brigade_task::Waited<'a, R, Facts>;

/// Iterator over handles in the order in which their tasks finish; returned by [`as_completed`].
pub type AsCompleted<R> = brigade_task::AsCompleted<R, Facts>;

/// Records what a pool's scheduler receives and decides, so that a run can be replayed without
/// processes.
///
/// [`PoolBuilder::journal`] records a journal, and [`replay`](journal::replay) replays it.
pub mod journal {
    pub use brigade_scheduler::journal::{Replay, ReplayError, replay};
}
