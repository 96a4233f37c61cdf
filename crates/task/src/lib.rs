//! The caller's side of Brigade: what a program holds of the tasks that it has submitted, whether a
//! pool on this machine runs them or a cluster of many.
//!
//! Most users depend on the facade crate `brigade`, which re-exports everything here. The main
//! types are [`Handle`] (one submitted task), [`TaskError`] (why a task returned no value) and
//! [`SubmitError`] (why a task was refused; it contains the argument). [`wait()`] and
//! [`as_completed`] wait for several handles, and [`Executor`] is for code that runs its tasks in a
//! pool or on a cluster.
//!
//! ```
//! use brigade::{Executor, Key, Pool};
//!
//! static SQUARE: Key<u64, u64> = Key::new("square/1", |x: u64| x * x);
//!
//! fn square(executor: &impl Executor) -> Result<u64, Box<dyn std::error::Error>> {
//!     Ok(executor.submit(&SQUARE, 7)?.wait()?)
//! }
//!
//! brigade::init();
//! let pool = Pool::builder().workers(1).build()?;
//! assert_eq!(square(&pool)?, 49);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A handle owns the record of its task, a [`Promise`](backend::Promise), which is generic over the
//! [`Facts`](backend::Facts) that an executor knows of a task. They lead to the executor, a
//! [`Backend`](backend::Backend).

//! # Invariants
//! - A task has one outcome, which is taken once. Whoever waits for it is woken, by the thread that
//!   stores it.
//! - No user code runs under a lock: wakers are returned to the executor, and callbacks have a
//!   thread of their own.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-task/latest")]
#![forbid(unsafe_code)]

mod abort_on_drop;
#[cfg(feature = "futures")]
mod as_stream;
pub mod backend;
mod bytes;
mod callbacks;
mod completed;
mod completion_queue;
#[doc(hidden)]
pub mod error;
mod executor;
#[doc(hidden)]
pub mod function;
mod handle;
#[doc(hidden)]
pub mod map;
mod outcome;
mod promise;
mod state;
mod submit_future;
#[doc(hidden)]
pub mod sync;
mod timeout;
mod wait;
mod waiters;
mod waiting;

pub use abort_on_drop::AbortOnDrop;
#[cfg(feature = "futures")]
pub use as_stream::{AsStream, PollNext};
pub use brigade_base::Retry;
pub use completed::{AsCompleted, as_completed};
pub use error::{SubmitError, SubmitErrorKind, TaskError, TaskErrorKind, TimedOut};
pub use executor::Executor;
pub use function::{Data, Function, NamedFunction};
pub use handle::{Handle, Untyped};
pub use map::{Indexed, Map, MapUnordered, WithInputs};
pub use state::TaskState;
pub use submit_future::SubmitFuture;
pub use timeout::{NextUntil, Timeout};
pub use wait::{Until, Waited, wait};
