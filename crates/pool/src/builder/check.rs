//! Turns the builder's settings into a checked configuration.

use std::sync::Arc;
use std::time::Duration;

use super::{MAX_WORKERS, PoolBuilder};
use crate::config::Config;
use crate::cores::SlotCores;
use crate::error::PoolError;
use crate::process_env::check_variable;

impl PoolBuilder {
    pub(super) fn check(self) -> Result<Config, PoolError> {
        require(self.cores_per_worker != Some(0), "cores_per_worker", || {
            "must be at least 1".into()
        })?;
        let cores = SlotCores::new(self.cores, self.cores_per_worker)?;
        let workers = match (self.workers, &cores) {
            (Some(workers), _) => workers,
            (None, Some(cores)) => cores.workers(),
            (None, None) => std::thread::available_parallelism().map_or(1, usize::from),
        };
        require((1..=MAX_WORKERS).contains(&workers), "workers", || {
            format!("must be between 1 and {MAX_WORKERS}, but is {workers}")
        })?;
        require(self.min_workers <= workers, "min_workers", || {
            format!("must be at most `workers` ({workers}), but is {}", self.min_workers)
        })?;
        require(self.max_tasks != Some(0), "max_tasks_per_worker", || "must be at least 1".into())?;
        require(self.max_age != Some(Duration::ZERO), "max_worker_age", || {
            "must be greater than zero".into()
        })?;
        require(self.max_rss != Some(0), "max_worker_rss", || "must be greater than zero".into())?;
        require(self.quarantine > 0, "quarantine_after", || "must be at least 1".into())?;
        for (field, limit) in [
            ("deadline", self.deadlines.hard),
            ("soft_deadline", self.deadlines.soft),
            ("queue_deadline", self.deadlines.queue),
        ] {
            require(limit != Some(Duration::ZERO), field, || "must be greater than zero".into())?;
        }
        require(self.queue_limit > 0, "queue_limit", || "must be at least 1".into())?;
        require(!self.restart_budget.1.is_zero(), "restart_budget", || {
            "the period must be greater than zero".into()
        })?;
        require(!self.start_timeout.is_zero(), "start_timeout", || {
            "must be greater than zero".into()
        })?;
        require((64..=u32::MAX as usize).contains(&self.message_limit), "message_limit", || {
            format!("must be between 64 and {} bytes, but is {}", u32::MAX, self.message_limit)
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
            #[cfg(feature = "journal")]
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
            process_env: self.process_env.check()?,
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
