//! Brigade is a pool of worker *processes* that runs typed functions isolated from your program.
//!
//! Code that may crash, leak, hang or hold global state (compilers, codecs, C libraries, data
//! loaders) belongs in another process. A [`Pool`] runs plain functions there. A crash costs only
//! the task that was running. The worker is replaced, and everything else goes on.
//!
//! ```no_run
//! use brigade::Pool;
//!
//! fn word_count(text: String) -> usize {
//!     text.split_whitespace().count()
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init(); // first line of main: in a worker process it never returns
//!     let pool = Pool::builder().workers(2).build()?;
//!     let handle = pool.submit(word_count, "never trust a C library".to_owned())?;
//!     println!("{} words", handle.wait()?);
//!     for count in pool.map(word_count, ["one".to_owned(), "two three".to_owned()]) {
//!         println!("{}", count?);
//!     }
//!     pool.shutdown()?;
//!     Ok(())
//! }
//! ```
//!
//! # What a crash costs
//! One task: the error says how its worker died, and has the last lines that it wrote to stderr.
//! Tasks that had not begun run elsewhere, in their order.
//!
//! # Which call to use
//! - One task: [`Pool::submit`] returns a [`Handle`], which is also a future.
//! - A list: [`Pool::map`] yields results in order, `Pool::map_unordered` as they come.
//! - Tasks of any kind: [`as_completed`] and [`wait`] take their handles.
//! - Inputs without end, or results larger than memory: `Pool::stream` has bounds on both sides.
//! - Commands, or many machines: the features `runner` and `cluster`.
//!
//! A [`TaskError`] says why a task has no value, and a [`SubmitError`] returns the argument of a
//! task that was not accepted. Inside a task, the functions of [`worker`] say where it runs.
//!
//! # What it is not for
//! Code that you trust (use threads), closures that capture, and state that tasks change together.
//! [Non-goals] has the reasons.
//!
//! # Where to read on
//! The [guide](https://docs.rs/brigade/latest/brigade/guide/index.html) begins with
//! [your first pool](guide::first_pool). It has [recipes](guide::recipes) for common problems, and
//! tables for readers who are [coming from](guide::coming_from) another library.
//!
//! # Requirements
//! Brigade runs on 64-bit Linux, 5.11 or later. [Kernels] says which feature needs a newer one.
//!
//! On macOS, FreeBSD and Windows, only a pool that is built with
//! [`in_process`](PoolBuilder::in_process) works: its workers are threads.
//!
//! [Cargo features](https://docs.rs/brigade/latest/brigade/#cargo-features) add sandboxes,
//! clusters, jobs, timers, views, and more.
//!
//! The repository has all promises and limits: [semantics], [failure model], [deadlines],
//! [events and spans], [clusters], [sandboxes and limits], the [security policy] and [questions].
//!
//! [Kernels]: https://github.com/brigade-rs/brigade/blob/main/docs/kernel.md
//! [Non-goals]: https://github.com/brigade-rs/brigade/blob/main/docs/non-goals.md
//! [questions]: https://github.com/brigade-rs/brigade/blob/main/docs/faq.md
//! [semantics]: https://github.com/brigade-rs/brigade/blob/main/docs/semantics.md
//! [failure model]: https://github.com/brigade-rs/brigade/blob/main/docs/failure-model.md
//! [deadlines]: https://github.com/brigade-rs/brigade/blob/main/docs/deadlines.md
//! [events and spans]: https://github.com/brigade-rs/brigade/blob/main/docs/tracing.md
//! [clusters]: https://github.com/brigade-rs/brigade/blob/main/docs/cluster.md
//! [sandboxes and limits]: https://github.com/brigade-rs/brigade/blob/main/docs/sandbox.md
//! [security policy]: https://github.com/brigade-rs/brigade/blob/main/SECURITY.md

//! # Under `cargo test`
//! The test executable is its own worker, as is every program. Put [`init_for_tests!`] into the
//! test file (or into the crate root under `#[cfg(test)]`), next to the tests:
//!
//! ```
//! brigade::init_for_tests!();
//!
//! fn double(x: u32) -> u32 {
//!     2 * x
//! }
//!
//! #[test]
//! fn doubling_works_in_another_process() {
//!     let pool = brigade::Pool::builder().workers(1).build().unwrap();
//!     assert_eq!(pool.submit(double, 21).unwrap().wait().unwrap(), 42);
//! }
//! # fn main() { doubling_works_in_another_process() }
//! # fn doubling_works_in_another_process() {
//! #     let pool = brigade::Pool::builder().workers(1).build().unwrap();
//! #     assert_eq!(pool.submit(double, 21).unwrap().wait().unwrap(), 42);
//! # }
//! ```
//!
//! # Rules for task functions
//! A task function is a function item, or a closure that captures nothing. It runs alone in its
//! worker, on the main thread of that process, and may print, panic, or exit.
//!
//! Its argument and result are owned `serde` types. They are encoded without names of fields and
//! types. So some attributes of `serde` do not work: `untagged`, `tag`, `flatten` and
//! `skip_serializing_if`.
//!
//! # Invariants
//! - A task accepted by `submit` gets exactly one outcome, whatever dies and whatever is dropped.
//! - A crash fails only the task that was running. Tasks that have not started run elsewhere and
//!   lose no attempt.
//! - When the program ends, in whatever way, its workers end. The one exception is a program that
//!   has given up the right to end them, by `setuid` after the pool was built.
//!
//! The modules `cores`, `runner`, `timer`, `cluster` and `status` can be used on their own, each
//! behind a cargo feature of its name.
//!
//! # Cargo features
//! - `bytemuck`: `SharedBuf::typed` and `SharedBufMut::typed_mut`, slices of plain types.
//! - `bytes`: `bytes::Bytes` from a `SharedBuf`, without a copy, and from that Arrow buffers.
//! - `ndarray`: `SharedBuf::array`, a view in several dimensions. Implies `bytemuck`.
//! - `cluster`: `brigade::cluster` runs tasks on many machines, over NATS JetStream.
//! - `cores` (default): `brigade::cores` leases cores of the machine and pins processes to them.
//!   Also adds `PoolBuilder::cores`, `PoolBuilder::cores_per_worker` and `worker::cores`.
//! - `futures` (default): the items of a [`stream`] as a `futures_core::Stream`.
//! - `ipc`: `Link::Ipc`. A *link* carries messages to workers. The usual one is shared
//!   memory, and this one is sockets.
//! - `recording` (default): [`metrics`] and [`Pool::snapshot`].
//! - `runner`: `brigade::runner` runs commands as jobs on leased cores. Implies `cores`.
//! - `report`: `brigade::runner::Report`, the page and the trace of a run.
//! - `timer`: `brigade::timer` kills processes that exceed a deadline.
//! - `status`: `brigade::status` and `Pool::serve_status`, a live view for browsers.
//! - `metrics`: snapshots for the recorder of the crate `metrics`.
//! - `sandbox`: `PoolBuilder::sandbox`, what workers may do, enforced by the kernel.
//! - `trace-export`: `PoolBuilder::trace`, a timeline of a pool that Perfetto opens.
//! - `backtrace`: crash reports with all calls, functions and lines.
//!
//! A program that pins no workers and reads no numbers can turn the default features off.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![expect(
    clippy::test_attr_in_doctest,
    reason = "the example shows a test file; its hidden main runs the test"
)]

pub use brigade_pool::journal;
#[doc(inline)]
pub use brigade_pool::{
    Data, Executor, Exit, Function, Handle, Key, Link, NamedFunction, Pool, PoolBuilder, PoolError,
    Resource, Retry, Shutdown, ShutdownReport, Start, Stdio, SubmitError, SubmitErrorKind,
    TaskError, TaskErrorKind, TaskId, TaskState, TimedOut, Until, as_completed, wait,
};
#[doc(inline)]
pub use brigade_pool::{Hold, Layer, Limit, Limits, SandboxReport};
#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use brigade_pool::{Sandbox, SandboxError};

#[doc(inline)]
pub use brigade_pool::stream;
#[doc(inline)]
pub use brigade_wire::codec::packed;
#[cfg(feature = "ndarray")]
pub use brigade_wire::shared::ArrayError;
#[cfg(feature = "bytemuck")]
pub use brigade_wire::shared::TypedError;
#[doc(inline)]
pub use brigade_wire::shared::{AllocError, Protection, SharedBuf, SharedBufMut};

// Chapters for readers. A program that depends on this crate compiles nothing of them.
#[cfg(any(doc, doctest))]
pub mod guide;
mod server;

/// Turns this process into a worker if a host has started it as one. Must be the first line of
/// `main`.
///
/// In any other process it returns at once. In a worker it never returns. It connects to the host
/// and runs the tasks that arrive. It ends the process when the host asks for that. If something is
/// wrong, the exit code says what.
///
/// Everything before it in `main` runs in every worker too. Files that are opened there without
/// close-on-exec (those of the standard library have it) are closed in a worker.
///
/// Start no thread before it. While another thread runs, a worker cannot remove the variable
/// `BRIGADE_WORKER` from its environment, so the processes that its tasks start inherit it, and the
/// link `Link::Ipc` cannot be created. Ring links work nevertheless, even if an allocator or a
/// preloaded library starts a thread before `main`. A pool that would fork its workers says so in a
/// `tracing` event.
///
/// `#[tokio::main]` starts the threads of its runtime first. Make `main` an ordinary function, call
/// `init`, and then build the runtime.
///
/// A worker has no arguments of the program: `std::env::args` has the one name `brigade-worker`.
/// Pass what a task needs of them in its argument, or in that of an initializer.
///
/// In tests, the harness does not capture what tasks print, because they run in other processes.
pub fn init() {
    brigade_worker::init_with(brigade_pool::CONNECTORS);
}

#[cfg(feature = "cluster")]
#[doc(inline)]
pub use brigade_cluster as cluster;
#[cfg(feature = "cores")]
#[doc(inline)]
pub use brigade_cores as cores;
/// Snapshots of pools: counts, times, failures, workers and slow tasks.
///
/// [`Pool::snapshot`] returns the snapshot of one pool, and [`global`](metrics::global) that of all
/// pools that the process has made. Both print a report with `Display` and are `serde` types. When
/// the last pool of the process ends, the report is logged at the level DEBUG.
#[cfg(any(feature = "metrics", feature = "recording", feature = "status"))]
#[doc(inline)]
pub use brigade_metrics as metrics;
#[cfg(feature = "runner")]
#[doc(inline)]
pub use brigade_runner as runner;
#[cfg(feature = "status")]
#[doc(inline)]
pub use brigade_status as status;
#[cfg(feature = "timer")]
#[doc(inline)]
pub use brigade_timer as timer;

/// Reports of crashes, and stacks of tasks: see [`TaskError::crash`] and [`Handle::stack`].
pub mod crash {
    pub use brigade_crash::{Cause, CrashReport, Frame, Origin, Stack};
}

/// All types of the pool: those at the root of this crate, and those that its methods return.
pub mod pool {
    #[doc(inline)]
    pub use brigade_pool::{
        AbortOnDrop, AsCompleted, Data, Encoded, Executor, Exit, Function, Handle, Indexed, Key,
        Link, Map, MapUnordered, Pool, PoolBuilder, PoolError, Resource, Retry, Shutdown,
        ShutdownReport, Stdio, SubmitError, SubmitErrorKind, SubmitFuture, TaskBuilder, TaskError,
        TaskErrorKind, TaskId, TaskState, TimedOut, Timeout, Until, Untyped, Waited, WithInputs,
        as_completed, wait,
    };

    #[cfg(feature = "futures")]
    #[doc(inline)]
    pub use brigade_pool::AsStream;
    #[cfg(feature = "status")]
    #[doc(inline)]
    pub use brigade_pool::StatusSource;
}

/// Functions for use inside a task, and [`Server`](worker::Server) for separate worker programs.
///
/// A task can ask which worker and which attempt it is, how much time it has left, and for the
/// value that the pool's initializer returned.
pub mod worker {
    #[cfg(feature = "cores")]
    pub use brigade_worker::context::cores;
    pub use brigade_worker::context::{
        Attempt, TaskId, WorkerId, amount, attempt, cancelled, depth, generation, id, indices,
        remaining, resource_variables, seed, slot, task, trace_context,
    };
    pub use brigade_worker::{SectionGuard, alloc, expires, preloaded, state, try_alloc};

    pub use crate::server::Server;
}

#[doc(hidden)]
pub use brigade_sys::before_main as __before_main;

/// Turns the test executable into a worker if a pool has started it as one. Works with any test
/// harness.
///
/// Expands to an item that calls [`init`] before `main`, which belongs to the harness in a test
/// executable. Write it once in each test file that uses a pool. In a program with its own `main`,
/// call [`init`] there.
#[macro_export]
macro_rules! init_for_tests {
    () => {
        $crate::__before_main!($crate::init);
    };
}
