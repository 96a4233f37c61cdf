//! Events of a run.

use std::sync::Arc;
use std::time::Duration;

use crate::job::Job;
use crate::outcome::Outcome;

/// An event of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An attempt of a job has started.
    Started {
        /// The job's number.
        number: u64,
        /// The job.
        job: Arc<Job>,
        /// Number of the attempt, from 1.
        attempt: u32,
        /// The slot it runs on, from 1.
        slot: usize,
        /// The host that it runs on, if it runs on a cluster.
        host: Option<Arc<str>>,
        /// The id of its process, and of the process group that it leads. 0 on a cluster.
        pid: u32,
        /// The cores it is pinned to; empty if it is not pinned.
        cores: Vec<u32>,
        /// Time since the start of the run.
        at: Duration,
    },
    /// A running job has printed something. Emitted only if [`Builder::live`](crate::Builder::live)
    /// is set.
    Output {
        /// The job's number.
        number: u64,
        /// The job.
        job: Arc<Job>,
        /// The slot it runs on, from 1.
        slot: usize,
        /// The stream that it printed to.
        stream: Stream,
        /// The printed text: whole lines, except for the end of a job's output and for very long
        /// lines.
        lines: Vec<u8>,
    },
    /// An attempt failed; there will be another.
    Retrying(Outcome),
    /// A job is over.
    Finished(Outcome),
    /// A canary succeeded.
    CanaryPassed {
        /// The prelude that it tried, if any.
        prelude: Option<String>,
    },
    /// The run ends before all its jobs have run. If a halt policy was met, this follows the
    /// outcome that met it immediately.
    Halting(Reason),
    /// Jobs were interrupted, and have this long before SIGTERM.
    Grace {
        /// Number of jobs that still run.
        running: usize,
        /// The time left.
        left: Duration,
    },
    /// All running jobs were sent a signal. The interrupt with which a stop begins has no such
    /// event.
    Signalled {
        /// Number of running jobs.
        running: usize,
        /// Name of the signal.
        signal: &'static str,
    },
    /// A process that had left its job's process group and outlived the job was killed.
    Stray {
        /// Its process id.
        pid: u32,
        /// Its name.
        name: String,
        /// The job that started it, if known.
        number: Option<u64>,
        /// `true` if the process is gone. It is not if it waits for a device or a file server.
        is_gone: bool,
    },
    /// [`Stopper::suspend`](crate::Stopper::suspend) was called: all running jobs are stopped, and
    /// continue when the handler of this event returns.
    Suspended,
    /// A running job was stopped by the system because it wants to use the terminal (SIGTTIN,
    /// SIGTTOU), which only the foreground may. Emitted once for each attempt, and only with
    /// [`Builder::adopt_orphans`](crate::Builder::adopt_orphans) and a program that calls
    /// [`Stopper::wake`](crate::Stopper::wake) at SIGCHLD.
    WantsTerminal {
        /// The job's number.
        number: u64,
        /// The id of its process.
        pid: u32,
    },
    /// A job is ready to start, and something is missing that no running job would return. Emitted
    /// once until another job starts.
    Waiting {
        /// The missing thing.
        need: Need,
    },
    /// The interval set by [`Builder::tick`](crate::Builder::tick) has elapsed.
    Tick,
}

/// One of a job's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A condition that a job waits for before it can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Need {
    /// Others have leased the cores.
    Cores,
    /// Less memory is available than [`Builder::least_memory`](crate::Builder::least_memory) asks
    /// for.
    Memory,
    /// More threads run than [`Builder::most_load`](crate::Builder::most_load) allows.
    Load,
}

/// The reason why no more jobs start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// [`Stopper::stop`](crate::Stopper::stop) was called.
    Stopped,
    /// The halt policy was met.
    Halted,
    /// A canary failed, or the client could not supply a job.
    Failed,
}
