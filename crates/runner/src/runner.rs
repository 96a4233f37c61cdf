//! Running jobs.

use std::num::NonZeroUsize;

use crate::cores::Cores;
use crate::drive::{Conduct, Drive, check_duplicates};
use crate::error::RunnerError;
use crate::event::Event;
use crate::job::Job;
use crate::source::{Jobs, Source};
use crate::stopper::Stopper;
use crate::summary::Summary;

/// Runs jobs, on the thread that asks for it.
///
/// It belongs to the process that built it. In a copy that `fork` has made, `run` and `run_source` are errors
/// ([`RunnerError::Forked`]), also if what the run has called forks and returns in both processes: the original goes on.
#[derive(Debug)]
pub struct Runner {
    pub(crate) conduct: Conduct,
    pub(crate) stopper: Stopper,
    pub(crate) allows_duplicates: bool,
}

impl Runner {
    /// Stops the run, from anywhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// How many jobs run at once at most.
    pub fn slots(&self) -> NonZeroUsize {
        self.conduct.settings.slots
    }

    /// How many cores there are for jobs; as many as slots if jobs are not pinned.
    pub fn cores(&self) -> NonZeroUsize {
        self.conduct.cores.as_ref().map_or(self.slots(), Cores::usable)
    }

    /// Whether each job is pinned to cores of its own.
    pub fn is_pinned(&self) -> bool {
        self.conduct.cores.is_some()
    }

    /// Runs all jobs, and tells what happens.
    ///
    /// When it returns, no process of a job is left.
    ///
    /// # Errors
    /// [`RunnerError`]. A job that fails is no error: its [`Outcome`](crate::Outcome) says so.
    pub fn run(
        self,
        jobs: impl IntoIterator<Item = Job>,
        tell: impl FnMut(Event<'_>),
    ) -> Result<Summary, RunnerError> {
        let jobs: Vec<Job> = jobs.into_iter().collect();
        if !self.allows_duplicates {
            check_duplicates(&jobs)?;
        }
        self.run_source(&mut Jobs(jobs.into_iter()), tell)
    }

    /// Runs the jobs of a source, one after the other as there is room, however many there are.
    ///
    /// Duplicates are not looked for, as that would need memory for every job.
    ///
    /// # Errors
    /// As [`run`](Self::run), and when the source fails.
    pub fn run_source(
        self,
        source: &mut dyn Source,
        mut tell: impl FnMut(Event<'_>),
    ) -> Result<Summary, RunnerError> {
        Drive::new(self.conduct, self.stopper, source, &mut tell)?.run()
    }
}
