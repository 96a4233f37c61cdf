//! The configuration of a pool: every setting, with its default.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_base::Inventory;
use brigade_sandbox::SandboxReport;
use brigade_scheduler::journal::Journal;
use brigade_scheduler::{Settings, Shutdown};
use brigade_supervisor::Setup;
use brigade_sys::arena::{Protection, Terms, default_budget};
use brigade_wire::link::connect::HostConnector;
use brigade_worker::Connectors;

use crate::cores::SlotCores;
use crate::deadlines::Deadlines;
use crate::error::PoolError;
use crate::task_span::TraceContext;

/// Upper bound of `workers`. A larger number is almost certainly a typing error.
pub(crate) const MAX_WORKERS: usize = 4096;

/// The settings of a pool. The builder holds them with their defaults; its `build` fills in those
/// that have to be found out, and checks them all.
#[derive(Debug)]
pub(crate) struct Config {
    /// Those that the scheduler needs, the number of workers among them.
    pub(crate) scheduler: Settings,
    /// Those that workers are started with.
    pub(crate) supervisor: brigade_supervisor::Settings,
    /// Cores that workers are pinned to, if any.
    pub(crate) cores: Option<Arc<SlotCores>>,
    /// Resources that tasks may need.
    pub(crate) resources: Inventory,
    pub(crate) journal: Option<PathBuf>,
    /// The way to end a pool that still lives when its process ends.
    pub(crate) at_exit: Shutdown,
    pub(crate) deadlines: Deadlines,
    pub(crate) link: Link,
    /// Bytes of all shared buffers.
    pub(crate) buffer_budget: usize,
    pub(crate) buffer_protection: Option<Protection>,
    /// The host has to look at the memory of tasks that have a limit.
    pub(crate) watches_memory: bool,
    /// Settings that do not hold, because workers are threads.
    pub(crate) left_out: Vec<&'static str>,
    /// The layers of the sandbox and the limits, and which of them hold.
    pub(crate) report: SandboxReport,
    /// Tasks that compute are interrupted for their stacks.
    pub(crate) interrupts: bool,
    /// Gives the trace context that workers get with each task.
    pub(crate) trace_context: Option<TraceContext>,
    #[cfg(feature = "trace-export")]
    pub(crate) trace: Option<PathBuf>,
}

impl Config {
    /// Returns the terms of each arena: the workers and the host have equal shares.
    pub(crate) fn buffer_terms(&self) -> Terms {
        let budget =
            self.buffer_budget / (self.scheduler.workers + self.scheduler.spare_workers + 1);
        // What an arena keeps counts as memory of its worker.
        let most = self.supervisor.limits.memory_limit().map(|limit| limit / 8);
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let budget = budget.min(most);
        // A worker in a sandbox is not to be trusted with memory that is read in place.
        let usual = if self.is_sandboxed() { Protection::Copied } else { Protection::default() };
        Terms { budget, protection: self.buffer_protection.unwrap_or(usual) }
    }

    /// Returns `true` if workers are in a sandbox.
    pub(crate) fn is_sandboxed(&self) -> bool {
        self.supervisor.sandbox.is_some()
    }

    /// Creates the journal, if the pool records one.
    pub(crate) fn create_journal(&self) -> Result<Option<Journal>, PoolError> {
        let Some(path) = &self.journal else { return Ok(None) };
        let journal = Journal::create(path, &self.scheduler);
        journal.map(Some).map_err(PoolError::file("journal", path))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            scheduler: Settings {
                workers: 1,
                // A task that needs more retries than this never succeeds.
                quarantine: 16,
                // Plenty for bursts, but bounded.
                queue_limit: 1 << 24,
                credit: CREDIT,
                restart_limit: 100,
                restart_window: Duration::from_secs(10),
                stop_grace: Duration::from_secs(2),
                cores: 1,
                trusts_workers: true,
                ..Settings::default()
            },
            supervisor: brigade_supervisor::Settings {
                pool: "pool".to_owned(),
                depth: 1,
                // A worker starts in about a millisecond; this allows for machines that swap.
                start_timeout: Duration::from_secs(10),
                setup: Setup {
                    // Loading a model or a large table takes seconds; anything that takes longer
                    // than this hangs.
                    timeout: Duration::from_secs(60),
                    ..Setup::default()
                },
                credit: CREDIT,
                message_limit: 1 << 30,
                ..brigade_supervisor::Settings::default()
            },
            cores: None,
            resources: Inventory::default(),
            journal: None,
            at_exit: Shutdown::Drain,
            deadlines: Deadlines::default(),
            link: Link::Auto,
            buffer_budget: default_budget(),
            buffer_protection: None,
            watches_memory: true,
            left_out: Vec::new(),
            report: SandboxReport::default(),
            interrupts: false,
            trace_context: None,
            #[cfg(feature = "trace-export")]
            trace: None,
        }
    }
}

/// Transport for tasks and outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Link {
    /// The best transport that the system supports: rings on Linux. The environment variable
    /// `BRIGADE_LINK` (`ring`, or `ipc` with the feature `ipc`) overrides the choice.
    #[default]
    Auto,
    /// Rings in shared memory.
    Ring,
    /// The `ipc-channel` crate. Needs the feature `ipc`.
    #[cfg(feature = "ipc")]
    Ipc,
}

/// The values of `BRIGADE_LINK`.
const LINKS: &str = if cfg!(feature = "ipc") {
    "`ring` or `ipc`"
} else {
    "`ring`, because this program was built without the feature `ipc` of brigade"
};

impl Link {
    /// Returns the connector of a link that is opened in the handshake, or `None` for rings.
    pub(crate) fn connector(self) -> Result<Option<&'static dyn HostConnector>, PoolError> {
        let chosen = match self {
            Self::Auto => std::env::var_os("BRIGADE_LINK"),
            Self::Ring => None,
            #[cfg(feature = "ipc")]
            Self::Ipc => return Ok(Some(&brigade_link_ipc::Ipc)),
        };
        let Some(name) = chosen.filter(|name| name != "ring") else { return Ok(None) };
        #[cfg(feature = "ipc")]
        if name == "ipc" {
            return Ok(Some(&brigade_link_ipc::Ipc));
        }
        let problem = format!("BRIGADE_LINK is `{}`; it must be {LINKS}", name.display());
        Err(PoolError::Configuration { field: "link", problem })
    }
}

/// The links, apart from rings, that a worker of this build can use. Workers of a pool with
/// [`Link::Ipc`] have to call `brigade_worker::init_with` with them; `brigade::init` does that.
pub const CONNECTORS: Connectors = &[
    #[cfg(feature = "ipc")]
    &brigade_link_ipc::Ipc,
];

/// Maximum number of frames under way to one worker: a millisecond of tasks that take a microsecond
/// each.
pub(crate) const CREDIT: u16 = 1024;

/// Returns an error that names the field unless the condition holds.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), PoolError> {
    if holds { Ok(()) } else { Err(PoolError::Configuration { field, problem: problem() }) }
}

/// Checks a number of workers.
pub(crate) fn check_workers(workers: usize, field: &'static str) -> Result<(), PoolError> {
    require((1..=MAX_WORKERS).contains(&workers), field, || {
        format!("must be between 1 and {MAX_WORKERS}, but is {workers}")
    })
}
