//! Testing: `cargo test`, nextest, doc tests and benchmarks.
//!
//! # One line
//!
//! A test executable has a `main` of its own, which belongs to the test harness. So `init` cannot
//! be the first line of it. [`init_for_tests!`](crate::init_for_tests) runs it before that `main`:
//!
//! ```
//! brigade::init_for_tests!();
//!
//! fn double(x: u32) -> u32 {
//!     2 * x
//! }
//!
//! # /*
//! #[test]
//! # */
//! fn doubling_works_in_another_process() {
//!     let pool = brigade::Pool::builder().workers(1).build().unwrap();
//!     assert_eq!(pool.submit(double, 21).unwrap().wait().unwrap(), 42);
//! }
//! # fn main() { doubling_works_in_another_process() }
//! ```
//!
//! Write the line once in each test executable:
//!
//! | tests | place |
//! |---|---|
//! | unit tests | the root of the crate (`lib.rs` or `main.rs`), under `#[cfg(test)]` |
//! | integration tests | each file in `tests/` |
//! | doc tests | a hidden line `# brigade::init_for_tests!();` |
//! | benchmarks (criterion, divan) | the file of the benchmark |
//!
//! Without it, `build` returns an error that says so.
//!
//! # nextest
//!
//! `cargo nextest run` needs nothing more. It starts one process for each test. So each test builds
//! its own pool.
//!
//! With `cargo test` all tests of a file share one process. Tests may share a pool in a `static`
//! then:
//!
//! ```
//! # brigade::init_for_tests!();
//! use std::sync::LazyLock;
//! use brigade::Pool;
//!
//! static POOL: LazyLock<Pool> =
//!     LazyLock::new(|| Pool::builder().workers(2).build().expect("a pool"));
//!
//! fn length(text: String) -> usize {
//!     text.len()
//! }
//!
//! # fn main() {
//! assert_eq!(POOL.submit(length, "four".to_owned()).unwrap().wait().unwrap(), 4);
//! # }
//! ```
//!
//! # Output of tasks
//!
//! The test harness captures what the test prints. It does not capture what a task prints, because
//! a worker is another process. So such lines appear among the dots.
//! [`stdio(Stdio::Null)`](crate::Stdio::Null) discards them.
//! [`Stdio::Capture`](crate::Stdio::Capture) makes `tracing` events of them.
//!
//! # Panics and backtraces
//!
//! A panic in a task is an error of the task. Its message and its place are in the error, so
//! `unwrap` on the result shows them. A failed assertion in a task therefore fails the test.
//!
//! # Tests of failures
//!
//! Your program should handle a crash of a task, so test that:
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn main() {
//! let pool = brigade::Pool::builder().workers(1).build().unwrap();
//! let crash = pool.submit(|_: ()| std::process::abort(), ()).unwrap();
//! let result: Result<(), _> = crash.wait();
//! assert!(result.unwrap_err().is_worker_death());
//! assert_eq!(pool.submit(|x: u32| x + 1, 1).unwrap().wait().unwrap(), 2);
//! # }
//! ```
//!
//! Wait for a task by its handle, and never by a pause. A
//! [`deadline`](crate::PoolBuilder::deadline) for the pool keeps a test from hanging.
//!
//! # Sanitizers and debuggers
//!
//! With `BRIGADE_IN_PROCESS=1` in the environment, workers are threads of the program: breakpoints,
//! coverage and sanitizers see the tasks. A task that crashes ends the program then.
//! [`in_process`](crate::PoolBuilder::in_process) does the same for one pool, and says what does
//! not hold there.
//!
//! ```
//! let pool = brigade::Pool::builder().in_process().build().unwrap();
//! let pid = pool.submit(|_: ()| std::process::id(), ()).unwrap();
//! assert_eq!(pid.wait().unwrap(), std::process::id());
//! ```
//!
//! Otherwise a worker is the same executable, started once more or copied. [Platforms] has a table
//! of valgrind, gdb, strace and others.
//!
//! [Platforms]: https://github.com/brigade-rs/brigade/blob/main/docs/platforms.md
//!
//! Next: [logs, metrics and traces](super::watching).
