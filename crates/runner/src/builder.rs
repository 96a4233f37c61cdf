//! Configuring a run.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use brigade_cores::{CorePool, Policy, Smt};

use crate::cores::{Cores, Shape};
use crate::drive::Conduct;
use crate::error::{BuildError, ConfigError};
use crate::halt::Halt;
use crate::job::Job;
use crate::limit::Limit;
use crate::machine::Settings;
use crate::output::Output;
use crate::runner::Runner;
use crate::stopper::Stopper;

/// Configures a [`Runner`].
#[derive(Debug)]
pub struct Builder {
    jobs: Option<NonZeroUsize>,
    is_pinned: bool,
    pool: Option<CorePool>,
    shape: Shape,
    allows_duplicates: bool,
    /// As it will be, but for the slots and the cores.
    conduct: Conduct,
}

/// How long a canary may take.
pub const CANARY_LIMIT: Duration = Duration::from_secs(60);
/// From SIGTERM to SIGKILL, for a job that is over its limit.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// From the first sign of patience to SIGTERM, for a run that is stopped; the original runner waits as long.
pub const STOP_GRACE: Duration = Duration::from_secs(10);
/// The nicest there is.
const NICEST: i32 = 19;
/// Each job takes some descriptors and threads of the kernel; more at once is no plan for one machine.
const MOST_JOBS: usize = 16_384;

impl Runner {
    /// A runner that pins each job to one core of its own, on all usable cores.
    pub fn builder() -> Builder {
        Builder {
            jobs: None,
            is_pinned: true,
            pool: None,
            shape: Shape::default(),
            allows_duplicates: false,
            conduct: Conduct {
                settings: Settings {
                    slots: NonZeroUsize::MIN,
                    retries: 0,
                    limit: None,
                    halt: None,
                    delay: Duration::ZERO,
                    canary: None,
                    canary_limit: CANARY_LIMIT,
                    kill_grace: KILL_GRACE,
                    stop_grace: STOP_GRACE,
                    tick: None,
                },
                cores: None,
                cores_per_job: NonZeroUsize::MIN,
                output: Output::default(),
                live: false,
                nice: 0,
                least_memory: None,
                adopts_orphans: false,
            },
        }
    }
}

impl Builder {
    /// How many jobs may run at once. By default as many as there are cores for.
    ///
    /// Pinned jobs never have more cores together than there are, so a larger number changes nothing for them.
    #[must_use]
    pub fn jobs(mut self, jobs: NonZeroUsize) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// How many cores a job gets that does not say itself. One by default.
    #[must_use]
    pub fn cores_per_job(mut self, cores: NonZeroUsize) -> Self {
        self.conduct.cores_per_job = cores;
        self
    }

    /// The pool that leases the cores, which others may lease from, too. All usable cores by default.
    #[must_use]
    pub fn cores(mut self, pool: CorePool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// How the cores of a job lie to each other. Contiguous by default.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.shape.policy = policy;
        self
    }

    /// What counts as a core: hardware threads by default.
    #[must_use]
    pub fn smt(mut self, smt: Smt) -> Self {
        self.shape.smt = smt;
        self
    }

    /// Lets jobs run on any core, for those that wait more than they work.
    #[must_use]
    pub fn unpinned(mut self) -> Self {
        self.is_pinned = false;
        self
    }

    /// How many more attempts a job gets after one that failed. None by default.
    ///
    /// The next attempt starts after the one before was reaped, with all of its group.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.conduct.settings.retries = retries;
        self
    }

    /// How long an attempt may take: then it gets SIGTERM, and after [`kill_grace`](Self::kill_grace) SIGKILL.
    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.conduct.settings.limit = Some(limit);
        self
    }

    /// When to stop before all jobs have run.
    #[must_use]
    pub fn halt(mut self, halt: Halt) -> Self {
        self.conduct.settings.halt = Some(halt);
        self
    }

    /// The least time between two starts.
    #[must_use]
    pub fn stagger(mut self, delay: Duration) -> Self {
        self.conduct.settings.delay = delay;
        self
    }

    /// A job that must succeed before any other is started, and once more after each distinct prelude.
    ///
    /// Preludes are tried even without one.
    #[must_use]
    pub fn canary(mut self, canary: Job) -> Self {
        self.conduct.settings.canary = Some(canary);
        self
    }

    /// How long a canary may take; [`CANARY_LIMIT`] by default.
    #[must_use]
    pub fn canary_limit(mut self, limit: Duration) -> Self {
        self.conduct.settings.canary_limit = limit;
        self
    }

    /// How long a job has from SIGTERM to SIGKILL; [`KILL_GRACE`] by default.
    #[must_use]
    pub fn kill_grace(mut self, grace: Duration) -> Self {
        self.conduct.settings.kill_grace = grace;
        self
    }

    /// How long jobs have from SIGINT to SIGTERM when the run is stopped; [`STOP_GRACE`] by default.
    #[must_use]
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.conduct.settings.stop_grace = grace;
        self
    }

    /// Tells [`Event::Tick`](crate::Event::Tick) this often, for a display that shows how time goes by.
    #[must_use]
    pub fn tick(mut self, tick: Duration) -> Self {
        self.conduct.settings.tick = Some(tick);
        self
    }

    /// Where outputs go. By default the last 64 KiB of each stream are kept.
    #[must_use]
    pub fn output(mut self, output: Output) -> Self {
        self.conduct.output = output;
        self
    }

    /// Tells lines as [`Event::Output`](crate::Event::Output) when they are printed, besides keeping them.
    #[must_use]
    pub fn live(mut self, live: bool) -> Self {
        self.conduct.live = live;
        self
    }

    /// What to add to the niceness of jobs, from 0 to 19.
    #[must_use]
    pub fn nice(mut self, nice: i32) -> Self {
        self.conduct.nice = nice;
        self
    }

    /// Starts a job only while this much memory is available, in bytes.
    #[must_use]
    pub fn least_memory(mut self, bytes: u64) -> Self {
        self.conduct.least_memory = Some(bytes);
        self
    }

    /// Adopts processes that leave their job's group and outlive it, and ends them with the run.
    ///
    /// Only for a program that has no children but its jobs: it changes whose parent this process is, for good.
    #[must_use]
    pub fn adopt_orphans(mut self) -> Self {
        self.conduct.adopts_orphans = true;
        self
    }

    /// Runs jobs that are the same, instead of calling them an error.
    #[must_use]
    pub fn allow_duplicates(mut self) -> Self {
        self.allows_duplicates = true;
        self
    }

    /// The runner.
    ///
    /// # Errors
    /// When a value makes no sense, or the cores cannot be found out.
    pub fn build(self) -> Result<Runner, BuildError> {
        let mut conduct = self.conduct;
        let wrong = |field, problem| Err(BuildError::Config(ConfigError { field, problem }));
        if !(0..=NICEST).contains(&conduct.nice) {
            let problem = format!("is {}: give a number from 0 to {NICEST}", conduct.nice);
            return wrong("nice", problem);
        }
        if self.jobs.is_some_and(|jobs| jobs.get() > MOST_JOBS) {
            return wrong("jobs", format!("is more than {MOST_JOBS}: give a smaller number"));
        }
        if conduct.settings.canary_limit.is_zero() {
            return wrong("canary_limit", "is zero: no canary could pass".to_owned());
        }
        if matches!(conduct.output, Output::Files { .. }) {
            let problem = "names files that all jobs would share: name them at each job".to_owned();
            return wrong("output", problem);
        }
        if self.is_pinned {
            let pool = match self.pool {
                Some(pool) => pool,
                None => CorePool::new().map_err(BuildError::Cores)?,
            };
            let cores = Cores::new(pool, self.shape);
            cores.check(conduct.cores_per_job.get()).map_err(BuildError::NeverFits)?;
            conduct.cores = Some(cores);
        }
        let usable = match &conduct.cores {
            Some(cores) => cores.usable(),
            None => available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        conduct.settings.slots = match (&conduct.cores, self.jobs) {
            (Some(_), Some(jobs)) => jobs.min(usable),
            (None, Some(jobs)) => jobs,
            (_, None) => usable,
        };
        let stopper = Stopper::new().map_err(BuildError::Waker)?;
        Ok(Runner { conduct, stopper, allows_duplicates: self.allows_duplicates })
    }
}
