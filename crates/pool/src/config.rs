//! The configuration of a pool after the builder has checked it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::Settings;
#[cfg(feature = "journal")]
use brigade_scheduler::journal::Journal;
use brigade_wire::link::connect::HostConnector;
use brigade_worker::Connectors;

use crate::cores::SlotCores;
use crate::deadlines::Deadlines;
use crate::error::PoolError;

use crate::process_env::ProcessEnv;
use crate::setup::Setup;

/// Checked settings of a pool.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) workers: usize,
    /// Cores that workers are pinned to, if any.
    pub(crate) cores: Option<Arc<SlotCores>>,
    pub(crate) min_workers: usize,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) max_tasks: Option<u64>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) max_rss: Option<u64>,
    #[cfg(feature = "journal")]
    pub(crate) journal: Option<PathBuf>,
    pub(crate) quarantine: u32,
    pub(crate) deadlines: Deadlines,
    pub(crate) queue_limit: usize,
    pub(crate) restart_limit: u32,
    pub(crate) restart_window: Duration,
    pub(crate) start_timeout: Duration,
    pub(crate) stop_grace: Duration,
    pub(crate) message_limit: usize,
    pub(crate) link: Link,
    pub(crate) worker_command: Option<CommandLine>,
    pub(crate) worker_version: Option<String>,
    pub(crate) process_env: ProcessEnv,
    pub(crate) setup: Setup,
}

impl Config {
    /// Returns the part that the scheduler needs.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            workers: self.workers,
            min_workers: self.min_workers,
            idle_timeout: self.idle_timeout,
            max_tasks: self.max_tasks,
            max_age: self.max_age,
            quarantine: self.quarantine,
            queue_limit: self.queue_limit,
            credit: CREDIT,
            restart_limit: self.restart_limit,
            restart_window: self.restart_window,
            stop_grace: self.stop_grace,
        }
    }

    /// Creates the journal, if the pool records one.
    #[cfg(feature = "journal")]
    pub(crate) fn create_journal(&self, settings: &Settings) -> Result<Option<Journal>, PoolError> {
        let Some(path) = &self.journal else { return Ok(None) };
        let journal =
            Journal::create(path, settings).map_err(|error| PoolError::Configuration {
                field: "journal",
                problem: format!("failed to create {}: {error}", path.display()),
            })?;
        Ok(Some(journal))
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
    /// The `ipc-channel` crate. Needs the feature `ipc`, which is on by default.
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
    /// Replaces `Auto` by the transport chosen for this process.
    pub(crate) fn resolve(self) -> Result<Self, PoolError> {
        if self != Self::Auto {
            return Ok(self);
        }
        match std::env::var_os("BRIGADE_LINK") {
            None => Ok(Self::Ring),
            Some(name) if name == "ring" => Ok(Self::Ring),
            #[cfg(feature = "ipc")]
            Some(name) if name == "ipc" => Ok(Self::Ipc),
            Some(name) => Err(PoolError::Configuration {
                field: "link",
                problem: format!("BRIGADE_LINK is `{}`; it must be {LINKS}", name.display()),
            }),
        }
    }

    /// Returns the connector of a link that is opened in the handshake, or `None` for rings.
    pub(crate) fn connector(self) -> Option<&'static dyn HostConnector> {
        match self {
            Self::Auto | Self::Ring => None,
            #[cfg(feature = "ipc")]
            Self::Ipc => Some(&brigade_link_ipc::Ipc),
        }
    }
}

/// The links, apart from rings, that a worker of this build can use. Workers of a pool with
/// [`Link::Ipc`] have to call `brigade_worker::init_with` with them; `brigade::init` does that.
pub const CONNECTORS: Connectors = &[
    #[cfg(feature = "ipc")]
    &brigade_link_ipc::Ipc,
];

/// A program with its arguments, which can be started any number of times.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, Option<OsString>)>,
    pub(crate) directory: Option<PathBuf>,
}

/// Number of queued tasks before `submit` blocks: plenty for bursts, but bounded.
pub(crate) const DEFAULT_QUEUE_LIMIT: usize = 1 << 24;

/// Number of workers that may die without having run a task, and the period for it.
pub(crate) const DEFAULT_RESTARTS: (u32, Duration) = (100, Duration::from_secs(10));

/// Number of workers that one task may kill. A task that needs more retries than this never
/// succeeds.
pub(crate) const DEFAULT_QUARANTINE: u32 = 16;

/// A worker starts in about a millisecond; this allows for machines that swap.
pub(crate) const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between the steps of the escalation that ends a worker.
pub(crate) const DEFAULT_STOP_GRACE: Duration = Duration::from_secs(2);

/// Maximum size of one encoded argument or result.
pub(crate) const DEFAULT_MESSAGE_LIMIT: usize = 1 << 30;

/// Maximum number of frames under way to one worker: half a millisecond of tasks that take a
/// microsecond each.
pub(crate) const CREDIT: u16 = 512;
