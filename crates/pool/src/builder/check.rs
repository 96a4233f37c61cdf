//! From settings to a configuration, or to the setting that is wrong.

use std::sync::Arc;
use std::time::Duration;

use super::{Builder, MOST_WORKERS};
use crate::config::Config;
use crate::cores::SlotCores;
use crate::error::PoolError;
use crate::surroundings::check_variable;

impl Builder {
    pub(super) fn check(self) -> Result<Config, PoolError> {
        require(self.cores_per_worker != Some(0), "cores_per_worker", || {
            "a worker cannot run on no core; give at least 1".into()
        })?;
        let cores = SlotCores::new(self.cores, self.cores_per_worker)?;
        let workers = match (self.workers, &cores) {
            (Some(workers), _) => workers,
            (None, Some(cores)) => cores.workers(),
            (None, None) => std::thread::available_parallelism().map_or(1, usize::from),
        };
        require((1..=MOST_WORKERS).contains(&workers), "workers", || {
            format!("{workers} is not possible; give 1 to {MOST_WORKERS}")
        })?;
        require(self.min_workers <= workers, "min_workers", || {
            format!("{} is more than the {workers} workers there may be", self.min_workers)
        })?;
        require(self.max_tasks != Some(0), "max_tasks_per_worker", || {
            "0 would do nothing; give at least 1".into()
        })?;
        require(self.max_age != Some(Duration::ZERO), "max_worker_age", || {
            "the time must not be zero".into()
        })?;
        require(self.max_rss != Some(0), "max_worker_rss", || {
            "0 bytes is less than any process takes".into()
        })?;
        require(self.quarantine > 0, "quarantine_after", || {
            "0 would allow no task to run; give at least 1".into()
        })?;
        for (field, limit) in [
            ("deadline", self.deadlines.hard),
            ("soft_deadline", self.deadlines.soft),
            ("queue_deadline", self.deadlines.queue),
        ] {
            require(limit != Some(Duration::ZERO), field, || "no task ends in no time".into())?;
        }
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
        if let Some(cores) = &cores {
            cores.reserve(workers, "cores_per_worker")?;
        }
        for (key, value) in self.worker_command.iter().flat_map(|line| &line.environment) {
            check_variable("worker_command", key, value.as_deref())?;
        }
        Ok(Config {
            name: self.name,
            workers,
            cores: cores.map(Arc::new),
            min_workers: self.min_workers,
            idle_timeout: self.idle_timeout,
            max_tasks: self.max_tasks,
            max_age: self.max_age,
            max_rss: self.max_rss,
            journal: self.journal,
            quarantine: self.quarantine,
            deadlines: self.deadlines,
            queue_limit: self.queue_limit,
            restart_limit: self.restart_budget.0,
            restart_window: self.restart_budget.1,
            start_timeout: self.start_timeout,
            stop_grace: self.stop_grace,
            message_limit: self.message_limit,
            link: self.link.resolve()?,
            worker_command: self.worker_command,
            worker_version: self.worker_version,
            surroundings: self.surroundings.check()?,
            setup: self.setup.check(self.message_limit)?,
        })
    }
}

pub(crate) fn require(
    holds: bool,
    field: &'static str,
    problem: impl FnOnce() -> String,
) -> Result<(), PoolError> {
    if holds { Ok(()) } else { Err(PoolError::Configuration { field, problem: problem() }) }
}
