//! Runs a list of commands as jobs, each on cores of its own, and loses none of them.
//!
//! A [`Runner`] (from [`Runner::builder`]) takes [`Job`]s, starts what fits, and tells [`Event`]s on the thread that
//! called it; each job ends in one [`Outcome`]. A [`Stopper`] stops the run from anywhere, as Ctrl-C does. Jobs that are
//! not all there yet come from a [`Source`].
//!
//! # Example
//!
//! ```
//! use brigade_runner::{Event, Job, Runner};
//!
//! let jobs = ["one", "two", "three"].map(|word| Job::new("echo").arg(word));
//! let mut printed = Vec::new();
//! let summary = Runner::builder().build()?.run(jobs, |event| {
//!     if let Event::Finished(outcome) = event {
//!         printed.push((outcome.number, outcome.stdout.tail(100).unwrap()));
//!     }
//! })?;
//! assert_eq!(summary.succeeded, 3);
//! printed.sort();
//! assert_eq!(printed[1], (2, b"two\n".to_vec()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! - Each job that was taken gets exactly one outcome.
//! - No core is leased to two jobs, and every lease is returned when its attempt was reaped.
//! - A job leads a process group of its own, which is gone when the job is over, when the run is, and when this process
//!   is, even if SIGKILL ended it.
//! - A retry starts only after the attempt before it was reaped with its group.
//! - Jobs start in the order in which they came: a wide job is not passed by narrow ones.
//! - Memory does not grow with the number of jobs, nor with what they print.

#![forbid(unsafe_code)]

mod builder;
mod cores;
mod drive;
mod error;
mod event;
mod forecast;
mod halt;
mod job;
mod limit;
mod machine;
mod memory;
mod outcome;
mod output;
mod runner;
mod source;
mod stopper;
mod summary;

pub use builder::{Builder, CANARY_LIMIT, KILL_GRACE, STOP_GRACE};
pub use drive::check_duplicates;
pub use error::{BuildError, ConfigError, HaltError, LimitError, RunnerError};
pub use event::{Event, Reason, Stream};
pub use forecast::{Forecast, LEAST_FOR_A_FORECAST};
pub use halt::{Halt, HaltOn, HaltWhen, Threshold};
pub use job::{Command, Job, Stdin, quote};
pub use limit::{LEAST_FOR_A_MEDIAN, Limit};
pub use outcome::{Ending, Outcome, StartFailure};
pub use output::{Captured, DEFAULT_TAIL, IN_MEMORY, Output};
pub use runner::Runner;
pub use source::{Jobs, Source, Supply};
pub use stopper::Stopper;
pub use summary::Summary;
