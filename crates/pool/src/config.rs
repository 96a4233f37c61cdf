//! What a pool is made of, once the builder has checked it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::cores::SlotCores;
use crate::error::PoolError;

use crate::setup::Setup;
use crate::surroundings::Surroundings;

/// The settings of a pool; each has passed the builder's checks.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) name: String,
    pub(crate) workers: usize,
    /// What workers are pinned to, if they are.
    pub(crate) cores: Option<Arc<SlotCores>>,
    pub(crate) min_workers: usize,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) max_tasks: Option<u64>,
    pub(crate) max_age: Option<Duration>,
    pub(crate) max_rss: Option<u64>,
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
    pub(crate) surroundings: Surroundings,
    pub(crate) setup: Setup,
}

/// The limits of tasks that have none of their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadlines {
    pub(crate) queue: Option<Duration>,
    pub(crate) soft: Option<Duration>,
    pub(crate) hard: Option<Duration>,
}

/// How tasks and answers travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Link {
    /// The best that the system has: rings on Linux. The environment variable `BRIGADE_LINK` (`ring` or `ipc`) decides if it is set.
    #[default]
    Auto,
    /// Rings in shared memory.
    Ring,
    /// ipc-channel.
    Ipc,
}

impl Link {
    /// What `Auto` stands for here.
    pub(crate) fn resolve(self) -> Result<Self, PoolError> {
        if self != Self::Auto {
            return Ok(self);
        }
        match std::env::var_os("BRIGADE_LINK") {
            None => Ok(Self::Ring),
            Some(name) if name == "ring" => Ok(Self::Ring),
            Some(name) if name == "ipc" => Ok(Self::Ipc),
            Some(name) => Err(PoolError::Configuration {
                field: "link",
                problem: format!(
                    "BRIGADE_LINK is `{}`; it must be `ring` or `ipc`",
                    name.display()
                ),
            }),
        }
    }
}

/// A program with arguments, kept so that it can be started any number of times.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, Option<OsString>)>,
    pub(crate) directory: Option<PathBuf>,
}

/// Queued tasks before `submit` makes callers wait: plenty for bursts, and bounded.
pub(crate) const DEFAULT_QUEUE_LIMIT: usize = 1 << 24;

/// Lives without a single task that a pool tolerates within ten seconds.
pub(crate) const DEFAULT_RESTARTS: (u32, Duration) = (100, Duration::from_secs(10));

/// So many workers may die under one task. Who allows more retries than this has a task that never works.
pub(crate) const DEFAULT_QUARANTINE: u32 = 16;

/// A worker starts in about a millisecond; this is for machines that swap.
pub(crate) const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(10);

/// Time between the rungs of the ladder that ends a worker.
pub(crate) const DEFAULT_STOP_GRACE: Duration = Duration::from_secs(2);

/// One argument or result, encoded.
pub(crate) const DEFAULT_MESSAGE_LIMIT: usize = 1 << 30;

/// Frames under way to one worker: half a millisecond of tasks of a microsecond each.
pub(crate) const CREDIT: u16 = 512;
