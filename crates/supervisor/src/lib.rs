//! Supervises processes, those of Brigade's workers and those of jobs: how they start, what they
//! print and how they end.
//!
//! Internal to Brigade: any release may change its interface. Programs use the facade `brigade`.
//!
//! - [`Launcher`] starts programs.
//! - [`OutputPipe`] and [`Capture`] read and keep what they print.
//!
//! A [`Supervisor`] has all threads and records of workers. It knows nothing of tasks: it takes
//! orders, and reports what happens to its owner, which implements [`Supervised`].
//!
//! - [`WorkerProcess`]: the process of one worker and its states
//! - [`threads::spawner`]: the thread that starts processes, and the threads that do their
//!   handshakes
//! - [`threads::reaper`]: the thread that waits for deaths and deadlines, and reaps
//! - [`threads::output`]: the thread that forwards output and emits `tracing` events
//! - [`threads::cleaner`]: the thread for slow work
//!
//! ```
//! use std::process::Command;
//!
//! use brigade_supervisor::{Capture, CommandLine};
//!
//! let line = CommandLine::from(&*Command::new("sort").arg("-n"));
//! assert_eq!(line.arguments, ["-n"]);
//!
//! let mut capture = Capture::tail_of(4);
//! capture.push(b"1\n2\n3\n");
//! assert_eq!(capture.finish().tail(100)?, b"2\n3\n");
//! # Ok::<(), std::io::Error>(())
//! ```

//! # Invariants
//!
//! - A worker's process that was started is reaped by the reaper, or by the thread whose handshake
//!   with it failed, and its death is reported once.
//! - Only the output thread calls `tracing` subscribers and writes to the host's stderr. No other
//!   thread of a supervisor runs user code.
//! - A panic of a thread's turn is contained. A thread that cannot go on says so to the owner.

#![forbid(unsafe_code)]

#[cfg(windows)]
extern crate brigade_windows as std;

mod capture;
mod command_line;
mod error;
mod launcher;
mod output_pipe;
mod workers;

pub use capture::{Capture, Captured, MAX_IN_MEMORY, Spill};
pub use command_line::CommandLine;
pub use error::{ContainsNul, EnvError, StartError};
pub use launcher::{LaunchSettings, Launcher, Prepared};
pub use output_pipe::{MAX_REST, OutputPipe};
pub use workers::*;
