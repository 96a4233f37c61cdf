//! How a pool is configured: every setting is checked before anything starts.

use std::process::Command;
use std::time::Duration;

use crate::Pool;
use crate::config::{
    CommandLine, Config, DEFAULT_MESSAGE_LIMIT, DEFAULT_QUEUE_LIMIT, DEFAULT_RESTARTS,
    DEFAULT_START_TIMEOUT, DEFAULT_STOP_GRACE, Link,
};
use crate::error::PoolError;

/// Settings of a [`Pool`]; get one from [`Pool::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    name: String,
    workers: Option<usize>,
    queue_limit: usize,
    restart_budget: (u32, Duration),
    start_timeout: Duration,
    stop_grace: Duration,
    message_limit: usize,
    link: Link,
    worker_command: Option<CommandLine>,
}

/// More processes than this are a slip of the pen.
const MOST_WORKERS: usize = 4096;

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            name: "pool".to_owned(),
            workers: None,
            queue_limit: DEFAULT_QUEUE_LIMIT,
            restart_budget: DEFAULT_RESTARTS,
            start_timeout: DEFAULT_START_TIMEOUT,
            stop_grace: DEFAULT_STOP_GRACE,
            message_limit: DEFAULT_MESSAGE_LIMIT,
            link: Link::Auto,
            worker_command: None,
        }
    }

    /// The most worker processes at a time; they start when there is work for them.
    /// Default: the cores that this process may use (affinity mask and cgroup quota considered).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// What events and process names call the pool. Default: `pool`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Tasks that may wait in the queue before `submit` makes its caller wait. Default: 16,777,216.
    pub fn queue_limit(mut self, tasks: usize) -> Self {
        self.queue_limit = tasks;
        self
    }

    /// How many workers may die within `per` without having done a task before the pool gives up. Default: 100 in 10 s.
    ///
    /// A worker that dies in a task, or after one, is not counted: such deaths are bounded by the number of tasks.
    pub fn restart_budget(mut self, deaths: u32, per: Duration) -> Self {
        self.restart_budget = (deaths, per);
        self
    }

    /// How long a worker may take from its start to the end of the handshake. Default: 10 s.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// How long a worker that is asked to leave gets before SIGTERM, and then before SIGKILL. Default: 2 s.
    pub fn stop_grace(mut self, grace: Duration) -> Self {
        self.stop_grace = grace;
        self
    }

    /// The most bytes that one encoded argument or result may have. Default: 1 GiB.
    pub fn message_limit(mut self, bytes: usize) -> Self {
        self.message_limit = bytes;
        self
    }

    /// How tasks and answers travel. Default: [`Link::Auto`].
    pub fn link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Another way to start the same program as a worker: a wrapper, or arguments.
    ///
    /// Program, arguments, environment and working folder are taken from `command`. The program must
    /// end in this very executable, whose first line of main calls `init`: the handshake compares builds.
    pub fn worker_command(mut self, command: &Command) -> Self {
        self.worker_command = Some(CommandLine {
            program: command.get_program().to_owned(),
            arguments: command.get_args().map(ToOwned::to_owned).collect(),
            environment: command
                .get_envs()
                .map(|(key, value)| (key.to_owned(), value.map(ToOwned::to_owned)))
                .collect(),
            directory: command.get_current_dir().map(ToOwned::to_owned),
        });
        self
    }

    /// Checks the settings and makes the pool. Workers start with the first tasks.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] names the setting that is wrong; [`PoolError::NotInitialised`] when
    /// `init` has not run in this process; [`PoolError::System`] when a thread cannot be started.
    pub fn build(self) -> Result<Pool, PoolError> {
        if brigade_worker::started_as_worker_without_init() {
            return Err(PoolError::WorkerWithoutInit);
        }
        if self.worker_command.is_none() && !brigade_worker::is_initialised() {
            return Err(PoolError::NotInitialised);
        }
        Pool::start(self.check()?)
    }

    fn check(self) -> Result<Config, PoolError> {
        let workers = match self.workers {
            Some(workers) => workers,
            None => std::thread::available_parallelism().map_or(1, usize::from),
        };
        require((1..=MOST_WORKERS).contains(&workers), "workers", || {
            format!("{workers} is not possible; give 1 to {MOST_WORKERS}")
        })?;
        require(self.queue_limit > 0, "queue_limit", || {
            "0 would take no task; give at least 1".into()
        })?;
        require(!self.restart_budget.1.is_zero(), "restart_budget", || {
            "the time must not be zero".into()
        })?;
        require(!self.start_timeout.is_zero(), "start_timeout", || {
            "no worker can start in no time".into()
        })?;
        require((64..=u32::MAX as usize).contains(&self.message_limit), "message_limit", || {
            format!("{} bytes is not possible; give 64 to {}", self.message_limit, u32::MAX)
        })?;
        Ok(Config {
            name: self.name,
            workers,
            queue_limit: self.queue_limit,
            restart_limit: self.restart_budget.0,
            restart_window: self.restart_budget.1,
            start_timeout: self.start_timeout,
            stop_grace: self.stop_grace,
            message_limit: self.message_limit,
            link: self.link.resolve()?,
            worker_command: self.worker_command,
        })
    }
}

fn require(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), PoolError> {
    if holds { Ok(()) } else { Err(PoolError::Configuration { field, problem: problem() }) }
}

impl Link {
    /// What `Auto` stands for here.
    fn resolve(self) -> Result<Self, PoolError> {
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
