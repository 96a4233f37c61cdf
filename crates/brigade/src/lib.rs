//! Brigade is a pool of worker *processes*: typed functions run crash-isolated from your program.
//!
//! Code that may crash, leak, hang or hold global state (compilers, codecs, C libraries, data loaders)
//! belongs in another process. A [`Pool`] runs plain functions there: a crash costs the one task that ran,
//! the worker is replaced, and everything else goes on.
//!
//! The principal types: [`Pool`] (from [`Pool::builder`]), [`Handle`] (one submitted task, also a future),
//! [`TaskError`] (why a task has no value) and [`SubmitError`] (why a task was not taken; it gives the argument
//! back). Inside a task, [`worker`] tells where it runs.
//!
//! Three more parts stand alone: [`cores`] leases the cores of the machine and pins to them, [`timer`] kills processes that
//! overrun, [`runner`] runs commands as jobs on leased cores.
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
//! # Under `cargo test`
//! The test executable is its own worker, as every program is. Put [`init_for_tests!`] into the test file (or
//! into the crate's root under `#[cfg(test)]`), next to the tests:
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
//! A task function is a function item or a closure that captures nothing; its argument and result are any
//! `serde` types that a non-self-describing format can carry (no `untagged` enums, no `flatten`). It runs
//! alone in its worker, on that process's main thread, and may print, panic, or exit.
//!
//! # Invariants
//! - A task accepted by `submit` gets exactly one outcome, whatever dies and whatever is dropped.
//! - A crash fails only the task that ran; tasks not yet begun run elsewhere, at no cost to them.
//! - When the program ends, however it ends, its workers end, unless it has given up the right to end them (`setuid` after the
//!   pool was built).

#![forbid(unsafe_code)]
#![expect(
    clippy::test_attr_in_doctest,
    reason = "the example shows a test file; its hidden main runs the test"
)]

pub use brigade_pool::{
    AsCompleted, Builder, Exit, Handle, Link, Map, MapUnordered, Pool, PoolError, Shutdown,
    ShutdownReport, Stdio, SubmitError, SubmitErrorKind, TaskBuilder, TaskError, TaskErrorKind,
    TaskId, TaskState, TimedOut, Until, Waited, as_completed, journal, wait,
};
pub use brigade_worker::init;

#[doc(inline)]
pub use brigade_cores as cores;
#[doc(inline)]
pub use brigade_runner as runner;
#[doc(inline)]
pub use brigade_timer as timer;

/// Inside a task: which worker this is, which attempt, what the initializer has made. And for a worker program of its own:
/// [`Server`](worker::Server).
pub mod worker {
    pub use brigade_worker::context::{
        attempt, cancelled, cores, depth, generation, id, remaining, seed, slot, task,
    };
    pub use brigade_worker::{SectionGuard, Server, expires, state};
}

#[doc(hidden)]
pub use brigade_sys::before_main as __before_main;

/// Makes the test executable a worker when it is started as one; for tests under any harness.
///
/// Expands to an item that calls [`init`] before `main`, which in a test executable belongs to the harness.
/// Write it once in each test file that uses a pool. In a program with a `main` of its own call [`init`] there.
#[macro_export]
macro_rules! init_for_tests {
    () => {
        $crate::__before_main!($crate::init);
    };
}
