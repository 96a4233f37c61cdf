//! Logs, metrics, the status page and traces.
//!
//! # What a pool says
//!
//! Brigade prints nothing. It emits `tracing` events: a worker that died, a task that was given up,
//! a start that failed. Install a subscriber in your program to see them.
//!
//! ```
//! # brigade::init_for_tests!();
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     brigade::init();
//!     tracing_subscriber::fmt().init();
//!     let pool = brigade::Pool::builder().name("decoders").workers(1).build()?;
//!     assert_eq!(pool.submit(|x: u8| x + 1, 1)?.wait()?, 2);
//!     Ok(())
//! }
//! ```
//!
//! The subscriber comes after `init`, so that workers do not install it.
//!
//! # Events of tasks
//!
//! A task runs in another process, so its events do not reach your subscriber.
//! [`forward_events`](crate::PoolBuilder::forward_events) forwards them. They carry the number of
//! the task, the worker and the attempt.
//!
//! ```
//! # brigade::init_for_tests!();
//! fn decode(name: String) -> usize {
//!     tracing::info!(name, "decoding"); // arrives even if the next line crashes
//!     name.len()
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = brigade::Pool::builder().workers(1).forward_events(tracing::Level::INFO).build()?;
//! assert_eq!(pool.submit(decode, "a.png".to_owned())?.wait()?, 5);
//! # Ok(())
//! # }
//! ```
//!
//! A task prints to the standard output and standard error of your program.
//! [`stdio`](crate::PoolBuilder::stdio) discards that, or makes an event of each line. In any case,
//! the error of a task that crashed has its last lines on stderr.
//!
//! # Names
//!
//! [`label`](crate::pool::TaskBuilder::label) names a task. [`name`](crate::PoolBuilder::name)
//! names a pool. Events, metrics and the status page show both, and an error shows the label.
//!
//! # Slow tasks
//!
//! [`slow_task_after`](crate::PoolBuilder::slow_task_after) reports a task that takes longer than
//! you expect. The event says whether the task waits, or which worker runs it.
//! [`Handle::stack`](crate::Handle::stack) returns the calls of a task that waits, and with
//! [`interrupt_for_stacks`](crate::PoolBuilder::interrupt_for_stacks) those of one that computes.
//!
//! # Numbers
//!
//! [`Pool::snapshot`](crate::Pool::snapshot) returns all numbers of one moment.
//!
//! ```
//! # brigade::init_for_tests!();
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! # pool.submit(|x: u8| x, 1)?.wait()?;
//! let snapshot = pool.snapshot();
//! assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.cancelled + snapshot.pending);
//! println!("{snapshot}"); // the whole report
//! # Ok(())
//! # }
//! ```
//!
//! [`metrics::export`](crate::metrics::export) turns a snapshot into the text that Prometheus
//! reads.
//!
//! # The status page
//!
//! A pool shows itself in a browser. That needs a cargo feature:
//! `cargo add brigade --features status`.
//!
//! ```
//! # #[cfg(feature = "status")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # brigade::init();
//! # let pool = brigade::Pool::builder().workers(1).build()?;
//! # fn step(x: u32) -> u32 { x }
//! let page = pool.serve_status("127.0.0.1:0")?; // port 0 stands for any free port
//! println!("open http://{}/", page.addr());
//! for result in pool.map(step, 0..1_000) {
//!     result?;
//! }
//! drop(page); // the page ends here, or with the program
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "status"))]
//! # fn main() {}
//! # brigade::init_for_tests!();
//! ```
//!
//! [`brigade top PORT`](super#the-command) shows the same in a terminal. Prometheus reads
//! `/metrics` there. Only loopback addresses are allowed, unless you lift that.
//!
//! # A timeline
//!
//! With the feature `trace-export`, `PoolBuilder::trace("trace.json")` writes a timeline.
//! [Perfetto](https://ui.perfetto.dev) opens it: a row for each worker, with its starts, tasks and
//! deaths.
//!
//! For spans and OpenTelemetry see
//! [tracing](https://github.com/brigade-rs/brigade/blob/main/docs/tracing.md).
//!
//! Next: [cores and NUMA](super::cores_and_numa).
