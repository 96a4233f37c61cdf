//! Turns the builder's settings into a valid configuration.

use std::sync::Arc;
use std::time::Duration;

use brigade_sandbox::Limits;
use brigade_supervisor::{Initializer, Settings, Start, check_variable};
use brigade_sys::orphans;

use super::PoolBuilder;
use super::confine::prepare_limits;
#[cfg(feature = "sandbox")]
use super::confine::prepare_sandbox;
use crate::config::{Config, MAX_WORKERS, check_workers, require};
use crate::cores::SlotCores;
use crate::error::PoolError;

impl PoolBuilder {
    /// Returns the configuration if every setting is valid; the error names the first that is not.
    pub(super) fn check(mut self) -> Result<Config, PoolError> {
        let config = &mut self.config;
        check_not_zero(config, self.cores_per_worker)?;
        for (name, resource) in &self.resources {
            let declared = config.resources.declare(name, *resource);
            declared.map_err(PoolError::configuration("resource"))?;
        }
        config.scheduler.resources = config.resources.resources().to_vec();
        let limit = config.supervisor.message_limit;
        require((64..=u32::MAX as usize).contains(&limit), "message_limit", || {
            format!(
                "must be between 64 and {} bytes, but is {limit}; send more in a `SharedBuf`",
                u32::MAX
            )
        })?;

        #[cfg(feature = "sandbox")]
        prepare_sandbox(config, self.sandbox.as_ref())?;
        prepare_limits(config)?;
        if config.supervisor.thread.is_none() {
            config.supervisor.connector = config.link.connector()?;
        }
        self.choose_copies();
        self.choose_workers()?;

        let supervisor = &mut self.config.supervisor;
        supervisor.depth = brigade_worker::context::depth().unwrap_or(0) + 1;
        for (key, value) in supervisor.command.iter().flat_map(|line| &line.environment) {
            check_variable("worker_command", key, value.as_deref())?;
        }
        supervisor.env = std::mem::take(&mut supervisor.env).check()?;

        let setup = &mut supervisor.setup;
        setup.preload = check_function("preload", self.preload, limit)?;
        setup.initializer = check_function("initializer", self.initializer, limit)?;
        if let Some(finalizer) = self.finalizer {
            let set = setup.set_finalizer(finalizer);
            set.map_err(PoolError::configuration("finalizer"))?;
        }
        Ok(self.config)
    }

    /// Decides whether workers run tasks in copies of themselves.
    fn choose_copies(&mut self) {
        let Config { scheduler, supervisor, .. } = &mut self.config;
        // Others wait for what a copy has, and the host does not know when it is gone.
        let waits = supervisor.env.is_by_slot() || !scheduler.resources.is_empty();
        let copies = self.is_fresh && !waits && can_copy(supervisor) && self.initializer.is_none();
        scheduler.copies = copies;
        if copies {
            supervisor.copies = Some(scheduler.stop_grace);
            (supervisor.credit, scheduler.credit) = (CREDIT_OF_COPIES, CREDIT_OF_COPIES);
        }
        if self.is_fresh {
            scheduler.max_tasks = if copies { None } else { Some(1) };
        }
    }

    /// Decides on the numbers of workers, and reserves their cores.
    fn choose_workers(&mut self) -> Result<(), PoolError> {
        let Config { scheduler, supervisor, .. } = &mut self.config;
        let cores_each = self.cores_per_worker.unwrap_or_else(available_cores);
        scheduler.cores = u32::try_from(cores_each).unwrap_or(u32::MAX);
        let cores = SlotCores::new(self.cores.take(), self.cores_per_worker)?;
        let usual = || cores.as_ref().map_or_else(available_cores, SlotCores::workers);
        let workers = self.workers.unwrap_or_else(usual);
        check_workers(workers, "workers")?;
        let min_workers = scheduler.min_workers;
        require(min_workers <= workers, "min_workers", || {
            format!("must be at most `workers` ({workers}), but is {min_workers}")
        })?;
        let is_exclusive = supervisor.env.is_by_slot() || cores.is_some();
        let ahead = self.is_fresh && !scheduler.copies && !is_exclusive;
        let spare = self.spare_workers.unwrap_or(if ahead { workers } else { 0 });
        require(workers.saturating_add(spare) <= MAX_WORKERS, "spare_workers", || {
            format!("with `workers` ({workers}), must be at most {MAX_WORKERS}, but is {spare}")
        })?;
        if let Some(cores) = &cores {
            let field = if spare == 0 { "cores_per_worker" } else { "spare_workers" };
            cores.reserve(workers + spare, field)?;
        }
        (scheduler.workers, scheduler.spare_workers) = (workers, spare);
        supervisor.is_pinned = cores.is_some();
        scheduler.exclusive_slots = is_exclusive;
        self.config.cores = cores.map(Arc::new);
        Ok(())
    }
}

/// Checks a function that workers run before their first task.
fn check_function(
    field: &'static str,
    function: Option<Result<Initializer, String>>,
    limit: usize,
) -> Result<Option<Initializer>, PoolError> {
    let function = function.transpose().map_err(PoolError::configuration(field))?;
    let length = function.as_ref().map_or(0, |it| it.encoded);
    require(length <= limit, field, || {
        format!(
            "its argument has {length} bytes, more than `message_limit` ({limit}); pass large \
             data in a `SharedBuf`"
        )
    })?;
    Ok(function)
}

/// Tasks that a worker has which copies itself for each: one that runs, and one for the next copy.
/// The time that a task takes says nothing about the time of a copy.
const CREDIT_OF_COPIES: u16 = 2;

/// Returns `true` if workers may run tasks in copies of themselves. In a sandbox they may not make
/// any, and limits are those of the worker. Elsewhere the link has a thread, or each process is to
/// be executed. A copy that dies with its worker would be a zombie of this process if that adopts
/// orphans.
fn can_copy(settings: &Settings) -> bool {
    settings.has_rings()
        && settings.start != Start::Exec
        && settings.sandbox.is_none()
        && settings.limits == Limits::new()
        && settings.max_rss.is_none()
        && !orphans::come_here()
}

fn available_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns an error for the first number that is zero and must not be.
fn check_not_zero(config: &Config, cores_per_worker: Option<usize>) -> Result<(), PoolError> {
    let Config { scheduler, supervisor, deadlines, .. } = config;
    for (field, is_zero) in [
        ("cores_per_worker", cores_per_worker == Some(0)),
        ("max_tasks_per_worker", scheduler.max_tasks == Some(0)),
        ("quarantine_after", scheduler.quarantine == 0),
        ("queue_limit", scheduler.queue_limit == 0),
    ] {
        require(!is_zero, field, || "must be at least 1".into())?;
    }
    for (field, is_zero) in [
        ("max_worker_age", scheduler.max_age == Some(Duration::ZERO)),
        ("slow_task_after", scheduler.slow_after == Some(Duration::ZERO)),
        ("max_worker_rss", supervisor.max_rss == Some(0)),
        ("buffer_budget", config.buffer_budget == 0),
        ("deadline", deadlines.hard == Some(Duration::ZERO)),
        ("soft_deadline", deadlines.soft == Some(Duration::ZERO)),
        ("queue_deadline", deadlines.queue == Some(Duration::ZERO)),
        ("start_timeout", supervisor.start_timeout.is_zero()),
        ("initializer_timeout", supervisor.setup.timeout.is_zero()),
    ] {
        require(!is_zero, field, || "must be greater than zero".into())?;
    }
    require(!scheduler.restart_window.is_zero(), "restart_budget", || {
        "the period must be greater than zero".into()
    })
}
