//! Settings of all workers of a pool.

use std::time::Duration;

use brigade_sandbox::{Groups, Limits, Prepared};
use brigade_wire::link::connect::HostConnector;
use brigade_wire::worker_thread::RunWorker;
use tracing::Level;

use crate::command_line::CommandLine;
use crate::workers::process_env::ProcessEnv;
use crate::workers::setup::Setup;

/// Settings of all workers of a pool. By default, all of them are off or zero.
#[derive(Debug, Default)]
pub struct Settings {
    /// The pool's name.
    pub pool: String,
    /// The program to start; `None` for this very program.
    pub command: Option<CommandLine>,
    /// The way in which processes are started.
    pub start: Start,
    /// Environment, working directory and standard streams.
    pub env: ProcessEnv,
    /// Level up to which workers forward their events; `None` if they do not.
    pub events: Option<Level>,
    /// `true` if workers are pinned to cores.
    pub is_pinned: bool,
    /// Time that a copy may take to exit, if each worker runs each task in a copy of itself; only
    /// over rings.
    pub copies: Option<Duration>,
    /// Memory after which a worker asks to be replaced.
    pub max_rss: Option<u64>,
    /// The version that the workers' program must have.
    pub version: Option<String>,
    /// Nesting depth of the workers: 1 for those of a main program.
    pub depth: u32,
    /// Time in which the handshake must be complete.
    pub start_timeout: Duration,
    /// Code that workers run before their first task and before they exit.
    pub setup: Setup,
    /// Opens the link; `None` for rings.
    pub connector: Option<&'static dyn HostConnector>,
    /// Runs a worker, if workers are threads of this process.
    pub thread: Option<RunWorker>,
    /// Maximum number of frames under way to one worker.
    pub credit: u16,
    /// Maximum size of an encoded argument or result.
    pub message_limit: usize,
    /// The sandbox of workers.
    pub sandbox: Option<Prepared>,
    /// The limits of workers, and of their tasks unless these have their own.
    pub limits: Limits,
    /// The places for control groups of workers; none if no limit needs them.
    pub groups: Groups,
}

impl Settings {
    /// Returns `true` if the link of workers is a pair of rings.
    pub fn has_rings(&self) -> bool {
        self.connector.is_none() && self.thread.is_none()
    }
}

/// The way in which worker processes are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Start {
    /// Forks workers from a server of the pool where that is safe, and executes them elsewhere.
    ///
    /// It is not safe if `main` starts threads before `init`, if `worker_command` starts its
    /// program as a child, or with a C library that Brigade does not know. A pool with a sandbox
    /// executes its workers too, so that none knows the layout of another one's memory.
    #[default]
    Auto,
    /// Executes the program for each worker. Each has an address space of its own layout, and runs
    /// `main` up to `init`.
    Exec,
    /// Forks workers from a server, which has run `main` up to `init` once. Where that is not safe,
    /// no worker can be started.
    Fork,
}
