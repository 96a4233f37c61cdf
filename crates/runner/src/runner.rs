//! The entry point: runs jobs on the calling thread.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use brigade_sys::descriptors;

use crate::client::{Client, Simple};
use crate::cores::Cores;
use crate::drive::{Drive, Hosts, Local, RunConfig};
use crate::duplicates::check_duplicates;
use crate::error::RunnerError;
use crate::event::Event;
use crate::job::Job;
use crate::outcome::Outcome;
use crate::remote::Remote;
use crate::stopper::Stopper;
use crate::summary::Summary;

/// Runs jobs on the calling thread.
///
/// A runner belongs to the process that built it. In a copy made by `fork`, `run` and `run_client`
/// return [`RunnerError::Forked`]. This holds even if code that the run has called forks and
/// returns in both processes: the original continues.
#[derive(Debug)]
pub struct Runner {
    pub(crate) config: RunConfig,
    pub(crate) stopper: Stopper,
    pub(crate) allows_duplicates: bool,
}

impl Runner {
    /// Returns a handle that stops the run from anywhere.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Returns the maximum number of jobs that run at once.
    pub fn slots(&self) -> NonZeroUsize {
        self.config.settings.slots
    }

    /// Returns the number of cores available to jobs, or the number of slots if jobs are not
    /// pinned.
    pub fn cores(&self) -> NonZeroUsize {
        self.config.cores.as_ref().map_or(self.slots(), Cores::usable)
    }

    /// Returns `true` if each job is pinned to its own cores.
    pub fn is_pinned(&self) -> bool {
        self.config.cores.is_some()
    }

    /// Checks that a job with this number could run on the cores of this runner.
    ///
    /// # Errors
    /// [`RunnerError::NeverFits`].
    pub fn check(&self, job: &Job, number: u64) -> Result<(), RunnerError> {
        let Some(cores) = &self.config.cores else { return Ok(()) };
        let count = job.cores.unwrap_or(self.config.cores_per_job);
        cores.check(count).map_err(|source| RunnerError::NeverFits {
            number,
            job: job.to_string(),
            source,
        })
    }

    /// Checks all jobs. Returns their numbers.
    fn check_all(&self, jobs: &[Job]) -> Result<Vec<u64>, RunnerError> {
        if !self.allows_duplicates {
            check_duplicates(jobs)?;
        }
        let mut next = 1;
        let numbers = jobs.iter().map(|job| {
            let number = job.number.unwrap_or(next);
            next = number.saturating_add(1);
            self.check(job, number).map(|()| number)
        });
        numbers.collect()
    }

    /// Runs all jobs and passes each event to `on_event`.
    ///
    /// No process of a job is left when it returns.
    ///
    /// # Errors
    /// Returns a [`RunnerError`] if the run as a whole fails. A job that fails is not an error of
    /// the run: its [`Outcome`](crate::Outcome) says so.
    pub fn run(
        self,
        jobs: impl IntoIterator<Item = Job>,
        on_event: impl FnMut(Event),
    ) -> Result<Summary, RunnerError> {
        let jobs: Vec<Job> = jobs.into_iter().collect();
        self.check_all(&jobs)?;
        self.run_client(&mut Simple { jobs: jobs.into_iter(), on_event })
    }

    /// Runs all jobs, and returns the outcome of each, in the order of the jobs.
    ///
    /// A job that did not start because the run was stopped or halted has an outcome with
    /// [`attempts`](Outcome::attempts) 0. An output that is kept whole and has more than
    /// [`MAX_IN_MEMORY`](crate::MAX_IN_MEMORY) bytes holds an open file; use [`run`](Self::run) if
    /// there are many.
    ///
    /// ```
    /// use brigade::runner::{Job, Runner};
    ///
    /// let jobs = [3, 1, 2].map(|n| Job::shell(format!("sleep 0.{n}; echo {n}")));
    /// let outcomes = Runner::builder().unpinned().jobs(3).build()?.run_all(jobs)?;
    /// assert_eq!(outcomes[0].stdout()?, b"3\n");
    /// assert!(outcomes.iter().all(|outcome| outcome.ending.is_success()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`run`](Self::run).
    pub fn run_all(self, jobs: impl IntoIterator<Item = Job>) -> Result<Vec<Outcome>, RunnerError> {
        let jobs: Vec<Job> = jobs.into_iter().collect();
        let numbers = self.check_all(&jobs)?;
        let mut outcomes = Vec::with_capacity(jobs.len());
        let on_event = |event| {
            if let Event::Finished(outcome) = event {
                outcomes.push(outcome);
            }
        };
        let mut client = Simple { jobs: jobs.into_iter(), on_event };
        self.run_client(&mut client)?;
        let not_supplied = client.jobs;
        let supplied = numbers.len() - not_supplied.len();
        let not_supplied = numbers[supplied..].iter().zip(not_supplied);
        let not_supplied = not_supplied.map(|(number, job)| (*number, Arc::new(job)));
        outcomes.extend(not_supplied.map(|(number, job)| Outcome::not_started(number, job)));
        let positions: HashMap<u64, usize> = numbers.into_iter().zip(0..).collect();
        outcomes.sort_by_key(|outcome| positions.get(&outcome.number).copied());
        Ok(outcomes)
    }

    /// Runs the jobs that a client supplies, however many there are, taking each when there is room
    /// for it.
    ///
    /// Does not look for duplicates, which would need memory for every job.
    ///
    /// # Errors
    /// As for [`run`](Self::run), and if the client fails to supply a job.
    pub fn run_client(self, client: &mut dyn Client) -> Result<Summary, RunnerError> {
        descriptors::fill_streams();
        let settings = self.config.settings.clone();
        let place = Local::new(self.config, self.stopper.clone())?;
        Drive::new(settings, self.stopper, client, place).run()
    }

    /// Runs the jobs that a client supplies on other machines.
    ///
    /// [`slots`](Self::slots) is the number of attempts that are handed over at once. Settings of
    /// this machine (cores, niceness, memory, load, output, confinement) do not apply, and a limit
    /// relative to the median does not either. When the run is stopped or halted, attempts that
    /// have not begun are withdrawn, and those that have may finish in the grace period.
    ///
    /// # Errors
    /// As for [`run_client`](Self::run_client).
    pub fn run_remote(
        self,
        client: &mut dyn Client,
        remote: &mut dyn Remote,
    ) -> Result<Summary, RunnerError> {
        self.stopper.check_process()?;
        let mut settings = self.config.settings;
        let place = Hosts::new(remote, &mut settings);
        Drive::new(settings, self.stopper, client, place).run()
    }
}
