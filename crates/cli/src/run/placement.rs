//! Decides whether jobs are pinned to cores.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use brigade::cores::{CorePool, Topology};
use miette::{IntoDiagnostic, Report};

use super::busy::busy_cores;
use super::explain;
use crate::arguments::{JobCount, Run};

/// Set for pinned jobs of a run: the cores that the run has leased for them.
const LEASED: &str = "BRIGADE_CORES";

/// The wishes that decide about pinning.
#[derive(Debug, Clone, Copy)]
struct Wishes {
    /// The number of jobs at once, if given.
    jobs: Option<NonZeroUsize>,
    cores_per_job: Option<NonZeroUsize>,
    has_policy: bool,
    no_pin: bool,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{jobs} jobs with {cores_per_job} cores each need {needed} cores, but there are only {usable}: use a smaller \
     --jobs, or leave out --cores-per-job and --policy to run jobs that are not pinned",
    needed = jobs.saturating_mul(*cores_per_job)
)]
struct TooMany {
    jobs: NonZeroUsize,
    cores_per_job: NonZeroUsize,
    usable: usize,
}

impl Wishes {
    /// Returns `true` if jobs are pinned. More jobs than cores are wanted for jobs that mostly
    /// wait, and pinned ones would take turns.
    fn pins(self, usable: usize) -> Result<bool, TooMany> {
        if self.no_pin {
            return Ok(false);
        }
        let Some(jobs) = self.jobs else { return Ok(true) };
        let cores_per_job = self.cores_per_job.unwrap_or(NonZeroUsize::MIN);
        if jobs.get().saturating_mul(cores_per_job.get()) <= usable {
            return Ok(true);
        }
        if self.cores_per_job.is_some() || self.has_policy {
            return Err(TooMany { jobs, cores_per_job, usable });
        }
        Ok(false)
    }

    /// Returns `true` if jobs with these wishes never need all usable cores. Jobs of a list may
    /// still ask for more.
    fn leaves_cores(self, usable: usize) -> bool {
        let cores_per_job = self.cores_per_job.map_or(1, NonZeroUsize::get);
        self.jobs.is_some_and(|jobs| jobs.get().saturating_mul(cores_per_job) < usable)
    }
}

/// The number of jobs at once, and their cores.
pub(super) struct Placement {
    /// `None` for the number of usable cores.
    pub(super) jobs: Option<NonZeroUsize>,
    /// Number of usable cores.
    pub(super) usable: usize,
    /// The pool that leases the cores of jobs; `None` if jobs are not pinned.
    pub(super) pool: Option<CorePool>,
}

/// Returns the placement that the options ask for.
pub(super) fn of(options: &Run) -> Result<Placement, Report> {
    let topology = Topology::discover().into_diagnostic()?;
    let usable = topology.available_parallelism();
    let is_free = options.cores_per_job.is_none() && options.policy.is_none();
    let all_at_once = (options.pipe.tee && is_free).then_some(JobCount::Unlimited);
    let jobs = options.jobs.or(all_at_once).map(|jobs| jobs.of(usable));
    let wishes = Wishes {
        jobs,
        cores_per_job: options.cores_per_job,
        has_policy: options.policy.is_some(),
        no_pin: options.no_pin,
    };
    let pool = if wishes.pins(usable).into_diagnostic()? {
        Some(pool(topology, wishes.leaves_cores(usable))?)
    } else {
        None
    };
    Ok(Placement { jobs, usable, pool })
}

/// Returns the pool for jobs. If `leaves_cores`, the jobs leave some cores free, rather those that
/// are busy.
fn pool(topology: Topology, leaves_cores: bool) -> Result<CorePool, Report> {
    let mut builder = CorePool::builder().topology(topology);
    if leaves_cores {
        builder = builder.avoid(busy_cores());
    }
    // The cores of a job are leased already, and a run inside that job must not wait for them.
    let is_inner = std::env::var_os(LEASED).is_some_and(|cores| !cores.is_empty());
    if is_inner {
        return builder.build().map_err(explain::pool_error);
    }
    match builder.clone().exclusive().build() {
        Ok(pool) => Ok(pool),
        Err(error @ brigade::cores::BuildError::LockFile { .. }) => {
            let report = Report::from_err(error);
            let _ = writeln!(
                io::stderr(),
                "brigade: jobs may share cores with those of other runs: {report:#}"
            );
            builder.build().map_err(explain::pool_error)
        }
        Err(error) => Err(explain::pool_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(jobs: usize, cores_per_job: usize, has_policy: bool) -> Result<bool, String> {
        let wishes = Wishes {
            jobs: NonZeroUsize::new(jobs),
            cores_per_job: NonZeroUsize::new(cores_per_job),
            has_policy,
            no_pin: false,
        };
        wishes.pins(4).map_err(|error| error.to_string())
    }

    #[test]
    fn more_jobs_than_cores_are_not_pinned() {
        assert_eq!(pins(0, 0, false), Ok(true));
        assert_eq!(pins(4, 0, true), Ok(true));
        assert_eq!(pins(5, 0, false), Ok(false));
    }

    #[test]
    fn wishes_for_cores_are_not_ignored() {
        assert_eq!(pins(2, 2, false), Ok(true));
        let error = pins(3, 2, false).expect_err("too many");
        assert!(error.starts_with("3 jobs with 2 cores each need 6 cores"), "{error}");
        assert!(pins(5, 0, true).is_err());
    }

    #[test]
    fn few_jobs_leave_cores() {
        let leaves_cores = |jobs, cores_per_job| {
            let (jobs, cores_per_job) = (NonZeroUsize::new(jobs), NonZeroUsize::new(cores_per_job));
            Wishes { jobs, cores_per_job, has_policy: false, no_pin: false }.leaves_cores(4)
        };
        assert!(leaves_cores(3, 0));
        assert!(!leaves_cores(2, 2));
        assert!(!leaves_cores(0, 0));
    }
}
