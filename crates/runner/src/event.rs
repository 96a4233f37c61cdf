//! What a runner tells while it runs.

use std::sync::Arc;
use std::time::Duration;

use crate::job::Job;
use crate::outcome::{Ending, Outcome};

/// Something has happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt of a job was started.
    Started {
        /// The job's number.
        number: u64,
        /// The job.
        job: &'a Arc<Job>,
        /// Which attempt, from 1.
        attempt: u32,
        /// The place it runs on, from 1.
        slot: usize,
        /// The number of its process, which leads a group of that number.
        pid: u32,
        /// The cores it is pinned to; empty if it is not.
        cores: &'a [u32],
        /// Since the start of the run.
        at: Duration,
    },
    /// A job printed something, which is told at once if the runner was asked to.
    Output {
        /// The job's number.
        number: u64,
        /// Where it printed.
        stream: Stream,
        /// What it printed: whole lines, but for the last of a job.
        lines: &'a [u8],
    },
    /// An attempt failed; another will be made.
    Retrying {
        /// The job's number.
        number: u64,
        /// The job.
        job: &'a Arc<Job>,
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How.
        ending: &'a Ending,
    },
    /// A job is over.
    Finished(Outcome),
    /// A canary succeeded.
    CanaryPassed {
        /// The prelude that it tried.
        prelude: Option<&'a str>,
    },
    /// No more jobs are started. If a policy was met, this follows the outcome that met it at once.
    Halting(Reason),
    /// Jobs were asked to end, and have this long until they are made to.
    Grace {
        /// How many jobs still run.
        running: usize,
        /// The time left.
        left: Duration,
    },
    /// Jobs were told to end.
    Signalled {
        /// How many.
        running: usize,
        /// By what.
        signal: &'static str,
    },
    /// A process had left its job's group and outlived it, and was killed.
    Stray {
        /// Its number.
        pid: u32,
        /// What it was called.
        name: &'a str,
        /// The job that started it, if that can be told.
        number: Option<u64>,
        /// Whether it is gone. Only a process that waits for a device or a file server is not.
        is_gone: bool,
    },
    /// The time that was asked for has passed.
    Tick,
}

/// Which of its two outputs a job has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Why no more jobs are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Somebody called [`Stopper::stop`](crate::Stopper::stop).
    Stopped,
    /// The halt policy was met.
    Halted,
    /// A canary failed, or the source of jobs did.
    Failed,
}
