//! Jobs that run on other machines: the interface to whatever runs them.

use std::sync::Arc;
use std::time::Duration;

use crate::job::Job;
use crate::outcome::Ending;

/// Runs attempts of jobs on other machines; for
/// [`Runner::run_remote`](crate::Runner::run_remote).
///
/// The runner calls all methods on its own thread, and none of them may block. Call
/// [`Stopper::wake`](crate::Stopper::wake) when there are news.
pub trait Remote {
    /// Hands an attempt over. It may wait for a machine before it begins.
    ///
    /// # Errors
    /// The reason why the job cannot run elsewhere.
    fn submit(&mut self, attempt: RemoteAttempt<'_>) -> Result<(), String>;

    /// Withdraws an attempt that has not begun, or kills it. Its end is reported as any other. May
    /// be called more than once.
    fn end(&mut self, ticket: u64);

    /// Returns the next news about an attempt, if there are any.
    fn news(&mut self) -> Option<News>;
}

/// An attempt that runs elsewhere.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct RemoteAttempt<'a> {
    /// Names the attempt in its news. Unique within a run.
    pub ticket: u64,
    /// The job's number.
    pub number: u64,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The job.
    pub job: &'a Job,
    /// The time limit from the moment when it begins.
    pub limit: Option<Duration>,
}

/// News about an attempt.
#[derive(Debug)]
#[non_exhaustive]
pub enum News {
    /// It has begun.
    Began {
        /// The attempt.
        ticket: u64,
        /// The host that it runs on.
        host: Arc<str>,
    },
    /// It is over.
    Ended {
        /// The attempt.
        ticket: u64,
        /// Everything known about its end.
        report: Box<RemoteReport>,
    },
    /// It was withdrawn or killed.
    Withdrawn {
        /// The attempt.
        ticket: u64,
    },
}

/// The end of an attempt that ran elsewhere. In the default, only the ending is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "report", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteReport {
    /// The host that it ran on; empty if it is not known.
    pub host: String,
    /// The number of its slot on the host, from 1; 0 if it is not known.
    pub slot: u32,
    /// The result.
    pub ending: Ending,
    /// Its start, by the clock of the host: the time since 1970. Zero if it is not known.
    pub started_at: Duration,
    /// Its duration.
    pub wall: Duration,
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident memory of any one of its processes, in bytes, if it is known.
    pub peak_memory: Option<u64>,
    /// Numbers of the cores of the host that it was pinned to; empty if it was not pinned.
    pub cores: Vec<u32>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl RemoteReport {
    /// Creates the report of an attempt of which only the ending is known.
    pub fn new(ending: Ending) -> Self {
        Self { ending, ..Self::default() }
    }

    pub(crate) fn known_host(&self) -> Option<Arc<str>> {
        (!self.host.is_empty()).then(|| self.host.as_str().into())
    }
}
