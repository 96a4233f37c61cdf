//! Runs a list of commands as jobs, each pinned to cores of its own, and reports every outcome.
//!
//! Programs can use this crate alone, or as `brigade::runner` in the facade `brigade`.
//!
//! A [`Runner`] (from [`Runner::builder`]) takes [`Job`]s, starts those that fit, and reports
//! [`Event`]s on the thread that called it. Each job ends in exactly one [`Outcome`]. A [`Stopper`]
//! stops the run from anywhere, as Ctrl-C does. A [`Client`] supplies jobs that are not all known
//! at the start.
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

//! # Invariants
//!
//! - Each job that was supplied gets exactly one outcome.
//! - No core is leased to two jobs at once, and every lease is returned when its attempt has been
//!   reaped.
//! - A job leads its own process group. The group is gone when the job is over, when the run is
//!   over, and when this process is gone, even after SIGKILL.
//! - A retry starts only after the previous attempt and its process group have been reaped.
//! - Jobs start in the order in which they were supplied: narrow jobs do not overtake a wide one.
//! - Memory use does not grow with the number of jobs or the size of their output.

// Items show the feature that they need.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Links of crates that are documented without this one lead there.
#![doc(html_root_url = "https://docs.rs/brigade-runner/latest")]
#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod block_streams;
mod builder;
mod client;
mod confinement;
mod cores;
mod drive;
mod duplicates;
mod error;
mod event;
mod file_part;
mod halt;
mod input_block;
mod job;
mod joblog;
mod limit;
mod load;
mod machine;
mod memory;
mod needs;
mod outcome;
mod output;
mod remote;
#[cfg(feature = "report")]
mod report;
mod results;
mod runner;
mod same;
mod semaphore;
mod stopper;
mod summary;

pub use block_streams::{BlockSharing, BlockStream, BlockStreams};
pub use brigade_base::{Resource, Retry};
pub use brigade_supervisor::{Captured, MAX_IN_MEMORY};
pub use builder::{Builder, CANARY_LIMIT, KILL_GRACE, MAX_JOBS, STOP_GRACE};
pub use client::{Client, Supply};
pub use confinement::Confinement;
pub use duplicates::{Duplicates, check_duplicates};
pub use error::{BuildError, ConfigError, HaltError, LimitError, ResumeError, RunnerError};
pub use event::{Event, Need, Reason, Stream};
pub use file_part::FilePart;
pub use halt::{Halt, HaltOn, HaltWhen, Threshold};
pub use input_block::InputBlock;
pub use job::{Command, INPUT_FILE, Job, Stdin, quote};
pub use joblog::{Joblog, Resume, ResumeRule};
pub use limit::{Limit, MIN_JOBS_FOR_MEDIAN};
pub use outcome::{Ending, Outcome, StartFailure};
pub use output::{DEFAULT_TAIL, Output};
pub use remote::{News, Remote, RemoteAttempt, RemoteReport};
#[cfg(feature = "report")]
pub use report::{About, Report};
pub use results::{ResultFiles, ResultTable, Results, TableFormat};
pub use runner::Runner;
pub use semaphore::Semaphore;
pub use stopper::Stopper;
pub use summary::Summary;
