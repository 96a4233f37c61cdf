//! Supervises the processes of Brigade's workers: how they start, what they print and how they end.
//!
//! It knows nothing of tasks. A [`Supervisor`] takes orders, and reports what happens to its owner,
//! which implements [`Supervised`]:
//!
//! - [`WorkerProcess`]: the process of one worker and its states
//! - [`spawner`]: the thread that starts processes, and the threads that do their handshakes
//! - [`handshake`]: the host's half of the handshake
//! - [`reaper`]: the thread that waits for deaths and deadlines, and reaps
//! - [`output`]: the thread that forwards output and emits `tracing` events
//!
//! # Invariants
//!
//! - A process that was started is reaped by the reaper, or by the thread whose handshake with it
//!   failed, and its death is reported once.
//! - Only the output thread calls `tracing` subscribers and writes to the host's stderr. No other
//!   thread runs user code.
//! - A panic of a thread's turn is contained. A thread that cannot go on says so to the owner.

#![forbid(unsafe_code)]

mod alarm;
mod command_line;
mod error;
mod folders;
pub mod handshake;
mod notes;
pub mod output;
mod process_env;
pub mod reaper;
mod settings;
pub mod spawner;
mod supervised;
mod supervisor;
mod worker_process;

pub use command_line::CommandLine;
pub use error::EnvError;
pub use notes::{Note, Notes};
pub use process_env::{ProcessEnv, Stdio, check_variable};
pub use settings::{Initializer, Settings, Setup};
pub use supervised::{SharedMemory, Supervised};
pub use supervisor::{Orders, Supervisor};
pub use worker_process::{Death, Killed, ProcessState, WorkerProcess};

/// Address space that has to be left before a thread is started or a worker's memory is mapped:
/// room for a stack, and for the program, which would abort if an allocation failed.
pub const RESERVED_SPACE: u64 = 10 << 20;
