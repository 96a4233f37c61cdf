//! The configuration of a run.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use brigade_base::{Inventory, Resource, Retry};
use brigade_cores::{CorePool, Policy, Smt};
use brigade_sys::descriptor_limit;

use crate::confinement::Confinement;
use crate::cores::{Cores, Shape};
use crate::drive::RunConfig;
use crate::error::{BuildError, ConfigError};
use crate::halt::Halt;
use crate::job::Job;
use crate::limit::Limit;
use crate::machine::Settings;
use crate::needs::Resources;
use crate::output::Output;
use crate::runner::Runner;
use crate::stopper::Stopper;

/// Configures a [`Runner`].
#[derive(Debug)]
pub struct Builder {
    jobs: Option<usize>,
    is_pinned: bool,
    pool: Option<CorePool>,
    shape: Shape,
    allows_duplicates: bool,
    raises_open_files: bool,
    resources: Vec<(String, Resource)>,
    needs: Vec<(String, u64)>,
    /// The configuration so far; [`build`](Self::build) fills in the slots and the cores.
    config: RunConfig,
}

/// The default time limit of a canary.
pub const CANARY_LIMIT: Duration = Duration::from_secs(60);
/// The default time between SIGTERM and SIGKILL for a job that exceeds its limit.
pub const KILL_GRACE: Duration = Duration::from_secs(1);
/// The default grace period of a stopped run: the time between the first countdown, half a second
/// after SIGINT, and SIGTERM. The original runner waits as long.
pub const STOP_GRACE: Duration = Duration::from_secs(10);
/// The highest niceness that the kernel knows.
const MAX_NICE: i32 = 19;
/// The largest number of jobs at once. Each takes some descriptors and a slot, and one machine
/// cannot sensibly run more.
pub const MAX_JOBS: usize = 16_384;

impl Runner {
    /// Returns a builder for a runner that pins each job to one core, using all usable cores.
    pub fn builder() -> Builder {
        Builder {
            jobs: None,
            is_pinned: true,
            pool: None,
            shape: Shape::default(),
            allows_duplicates: false,
            raises_open_files: false,
            resources: Vec::new(),
            needs: Vec::new(),
            config: RunConfig { cores_per_job: 1, ..RunConfig::default() },
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            slots: NonZeroUsize::MIN,
            retry: Retry::of(0),
            retries_only_timeouts: false,
            limit: None,
            halt: None,
            delay: Duration::ZERO,
            canary: None,
            canary_limit: CANARY_LIMIT,
            kill_grace: KILL_GRACE,
            stop_grace: STOP_GRACE,
            tick: None,
            is_remote: false,
        }
    }
}

brigade_sys::setters! {
    impl Builder;

    /// Sets the maximum number of jobs that run at once. The default is the number of usable cores.
    ///
    /// Pinned jobs never hold more cores than there are, so a larger number has no effect on them.
    pub fn jobs(self, jobs: usize) { self.jobs = Some(jobs) }

    /// Sets the number of cores for jobs that do not set their own. The default is one.
    pub fn cores_per_job(self, cores: usize) { self.config.cores_per_job = cores }

    /// Declares a limited resource, such as GPUs or licenses. A job starts when all
    /// that it needs is left; until then it holds up those behind it, as one does that waits for
    /// cores.
    pub fn resource(self, name: impl Into<String>, resource: Resource) {
        self.resources.push((name.into(), resource));
    }

    /// Adds an amount of a resource that jobs take while they run, unless they say what they
    /// [need](Job::needs).
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.needs.push((resource.into(), amount));
    }

    /// Sets the pool that leases the cores; others may lease from it, too. The default is a pool of
    /// all usable cores.
    pub fn cores(self, pool: CorePool) { self.pool = Some(pool) }

    /// Sets how the cores of a job are placed relative to each other. The default is contiguous.
    pub fn policy(self, policy: Policy) { self.shape.policy = policy }

    /// Sets what counts as a core. The default is a hardware thread.
    pub fn smt(self, smt: Smt) { self.shape.smt = smt }

    /// Lets jobs run on any core; useful for jobs that mostly wait.
    pub fn unpinned(self) { self.is_pinned = false }

    /// Sets the number of additional attempts for a job that fails. The default is 0.
    ///
    /// The next attempt starts after the previous one and its process group have been reaped.
    pub fn retries(self, retries: u32) { self.config.settings.retry = Retry::of(retries) }

    /// Sets the number of attempts, the first one included, and the pauses between them. In its
    /// pause, a job has no slot and no cores. Jitter is made of the number of the job. Jobs that
    /// set their own number of retries have these pauses too.
    pub fn retry(self, retry: Retry) { self.config.settings.retry = retry }

    /// Tries a job again only if it exceeded its time limit, and not if it failed.
    pub fn retry_only_timeouts(self) { self.config.settings.retries_only_timeouts = true }

    /// Sets the time limit of an attempt: it gets SIGTERM, and SIGKILL after
    /// [`kill_grace`](Self::kill_grace).
    pub fn limit(self, limit: Limit) { self.config.settings.limit = Some(limit) }

    /// Sets the policy for stopping before all jobs have run.
    pub fn halt(self, halt: Halt) { self.config.settings.halt = Some(halt) }

    /// Sets the minimum time between two starts.
    pub fn stagger(self, delay: Duration) { self.config.settings.delay = delay }

    /// Sets a job that must succeed before any other job starts, and once more for each distinct
    /// prelude.
    ///
    /// Preludes are tried even without a canary.
    pub fn canary(self, canary: Job) { self.config.settings.canary = Some(canary) }

    /// Sets the time limit of a canary. The default is [`CANARY_LIMIT`].
    pub fn canary_limit(self, limit: Duration) { self.config.settings.canary_limit = limit }

    /// Sets the time between SIGTERM and SIGKILL for an attempt that is ended. The default is
    /// [`KILL_GRACE`].
    pub fn kill_grace(self, grace: Duration) { self.config.settings.kill_grace = grace }

    /// Sets the grace period between SIGINT and SIGTERM when the run is stopped. The default is
    /// [`STOP_GRACE`].
    pub fn stop_grace(self, grace: Duration) { self.config.settings.stop_grace = grace }

    /// Emits [`Event::Tick`](crate::Event::Tick) at this interval, for displays that show elapsed
    /// time.
    pub fn tick(self, tick: Duration) { self.config.settings.tick = Some(tick) }

    /// Sets where outputs go. By default the last 64 KiB of each stream are kept.
    pub fn output(self, output: Output) { self.config.output = output }

    /// Emits output lines as [`Event::Output`](crate::Event::Output) as they arrive, in addition to
    /// keeping them.
    pub fn live(self, live: bool) { self.config.live = live }

    /// Sets the amount added to the niceness of jobs, from 0 to 19.
    pub fn nice(self, nice: i32) { self.config.nice = nice }

    /// Starts a job only while at least this many bytes of memory are available.
    pub fn least_memory(self, bytes: u64) { self.config.least_memory = Some(bytes) }

    /// Starts a job only while fewer threads than this run or wait for a processor on the whole
    /// machine.
    pub fn most_load(self, threads: f64) { self.config.most_load = Some(threads) }

    /// Sets the name of an environment variable with the number of a job's slot, from 0, for
    /// example to choose one of several devices.
    pub fn slot_variable(self, name: impl Into<OsString>) {
        self.config.slot_variable = Some(name.into());
    }

    /// Adopts processes that leave their job's process group and outlive it, and kills them at the
    /// end of the run.
    ///
    /// Use this only in a program whose only children are its jobs: it permanently makes this
    /// process the parent of all orphaned descendants.
    pub fn adopt_orphans(self) { self.config.adopts_orphans = true }

    /// Sets the rights and resources that jobs do without, unless they set their own. The default
    /// is none.
    pub fn confinement(self, confinement: Arc<Confinement>) {
        self.config.confinement = Some(confinement);
    }

    /// Raises this process's soft limit on open descriptors to the hard limit. Jobs get the
    /// previous one.
    ///
    /// A running job takes three descriptors, and logins usually start with a limit of 1024. Jobs
    /// for which none are left wait until another job ends.
    pub fn raise_open_files(self) { self.raises_open_files = true }

    /// Runs duplicate jobs instead of reporting an error.
    pub fn allow_duplicates(self) { self.allows_duplicates = true }
}

impl Builder {
    /// Builds the runner.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid or the cores of the machine cannot be determined.
    pub fn build(self) -> Result<Runner, BuildError> {
        let mut config = self.config;
        let wrong = |field, problem| BuildError::Config(ConfigError { field, problem });
        if !(0..=MAX_NICE).contains(&config.nice) {
            let problem = format!("must be from 0 to {MAX_NICE}, not {}", config.nice);
            return Err(wrong("nice", problem));
        }
        if self.jobs.is_some_and(|jobs| !(1..=MAX_JOBS).contains(&jobs)) {
            return Err(wrong("jobs", format!("must be from 1 to {MAX_JOBS}")));
        }
        if config.cores_per_job == 0 {
            return Err(wrong("cores_per_job", "must be at least 1".to_owned()));
        }
        if config.settings.canary_limit.is_zero() {
            return Err(wrong("canary_limit", "must be greater than zero".to_owned()));
        }
        let is_name = |name: &OsString| !name.is_empty() && !name.as_bytes().contains(&b'=');
        if !config.slot_variable.as_ref().is_none_or(is_name) {
            return Err(wrong("slot_variable", "must be the name of a variable".to_owned()));
        }
        if matches!(config.output, Output::Files { .. }) {
            let problem = "must not name files that all jobs share: set them for each job";
            return Err(wrong("output", problem.to_owned()));
        }
        let mut inventory = Inventory::default();
        for (name, resource) in &self.resources {
            let declared = inventory.declare(name, *resource);
            declared.map_err(|error| wrong("resource", error.to_string()))?;
        }
        let resources = Resources::new(inventory, self.needs);
        config.resources = resources.map_err(|error| wrong("needs", error.to_string()))?;
        if self.is_pinned {
            let pool = match self.pool {
                Some(pool) => pool,
                None => CorePool::new().map_err(BuildError::Cores)?,
            };
            let cores = Cores::new(pool, self.shape);
            cores.check(config.cores_per_job).map_err(BuildError::NeverFits)?;
            config.cores = Some(cores);
        }
        let usable = match &config.cores {
            Some(cores) => cores.usable(),
            None => available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        config.settings.slots = match (&config.cores, self.jobs.and_then(NonZeroUsize::new)) {
            (Some(_), Some(jobs)) => jobs.min(usable),
            (None, Some(jobs)) => jobs,
            (_, None) => usable,
        };
        if self.raises_open_files {
            match descriptor_limit::raise() {
                Ok(before) => config.open_files = before,
                Err(error) => tracing::debug!(%error, "the limit on descriptors stays"),
            }
        }
        let stopper = Stopper::new().map_err(BuildError::Waker)?;
        Ok(Runner { config, stopper, allows_duplicates: self.allows_duplicates })
    }
}
