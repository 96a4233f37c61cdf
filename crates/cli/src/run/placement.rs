//! Decides whether jobs are pinned to cores.

use std::io::{self, Write};
use std::num::NonZeroUsize;

use brigade::cores::{CorePool, Topology};
use miette::{IntoDiagnostic, Report, miette};

use super::busy::busy_cores;
use super::explain;
use crate::arguments::{JobCount, Run};

/// Set for pinned jobs of a run: the cores that the run has leased for them.
const LEASED: &str = "BRIGADE_CORES";

/// Returns `true` if jobs are pinned that need this number of cores at once; `None` if that is
/// wished and not possible. More jobs than cores are wanted for jobs that mostly wait, and pinned
/// ones would take turns.
fn pins(needed: Option<usize>, usable: usize, is_free: bool) -> Option<bool> {
    match needed {
        Some(needed) if needed > usable => is_free.then_some(false),
        _ => Some(true),
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
    let cores_per_job = options.cores_per_job.map_or(1, NonZeroUsize::get);
    let needed = jobs.map(|jobs| jobs.get().saturating_mul(cores_per_job));
    let pool = match pins(needed, usable, is_free) {
        _ if options.no_pin => None,
        Some(false) => None,
        // Jobs of a list may still ask for more.
        Some(true) => Some(pool(topology, needed.is_some_and(|needed| needed < usable))?),
        None => {
            let (jobs, needed) = (jobs.unwrap_or(NonZeroUsize::MIN), needed.unwrap_or_default());
            return Err(miette!(
                "{jobs} jobs with {cores_per_job} cores each need {needed} cores, but there are only {usable}: use a \
                 smaller --jobs, or leave out --cores-per-job and --policy to run jobs that are not pinned"
            ));
        }
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

    #[test]
    fn more_jobs_than_cores_are_not_pinned() {
        assert_eq!(pins(None, 4, true), Some(true));
        assert_eq!(pins(Some(4), 4, false), Some(true));
        assert_eq!(pins(Some(5), 4, true), Some(false));
    }

    #[test]
    fn wishes_for_cores_are_not_ignored() {
        assert_eq!(pins(Some(6), 4, false), None);
    }
}
