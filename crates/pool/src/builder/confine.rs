//! Settings that limit what workers may take and do.

use brigade_sandbox::{CPU_MEANS, Groups, Layer, Limits, NO_GROUP, WATCHED};

use super::PoolBuilder;
use crate::config::Config;
use crate::error::PoolError;

brigade_sys::setters! {
    impl PoolBuilder;

    /// Limits what workers and their tasks may take. A task that exceeds its memory, its processor
    /// time, the size of a file or the stack ends with
    /// [`LimitExceeded`](crate::TaskErrorKind::LimitExceeded), and another worker goes on. Retries
    /// treat that like an exceeded deadline. Default: no limits.
    ///
    /// The limits hold after the initializer.
    pub fn limits(self, limits: Limits) { self.config.supervisor.limits = limits }

    /// Puts workers into a sandbox after their initializer and before their first task. A task that
    /// makes a forbidden system call ends with [`Denied`](crate::TaskErrorKind::Denied).
    ///
    /// Workers in a sandbox see no argument of a task that they do not run, and their shared
    /// buffers are copied before the host reads them, unless
    /// [`buffer_protection`](Self::buffer_protection) says otherwise. In a strict one they have no
    /// environment but what [`env`](Self::env) sets.
    ///
    /// ```no_run
    /// use brigade::{Limits, Pool, Sandbox};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let pool = Pool::builder()
    ///     .sandbox(Sandbox::strict().read("/usr/share/fonts"))
    ///     .limits(Limits::new().memory(512 << 20))
    ///     .build()?;
    /// println!("{}", pool.sandbox_report());
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "sandbox")]
    pub fn sandbox(self, sandbox: brigade_sandbox::Sandbox) { self.sandbox = Some(sandbox) }
}

/// Makes the sandbox.
#[cfg(feature = "sandbox")]
pub(super) fn prepare_sandbox(
    config: &mut Config,
    sandbox: Option<&brigade_sandbox::Sandbox>,
) -> Result<(), PoolError> {
    let Some(sandbox) = sandbox else { return Ok(()) };
    let prepared = sandbox.prepare().map_err(PoolError::configuration("sandbox"))?;
    config.report = prepared.report.clone();
    config.supervisor.sandbox = Some(prepared);
    config.scheduler.trusts_workers = false;
    Ok(())
}

/// Checks the limits, and finds the means to enforce them.
pub(super) fn prepare_limits(config: &mut Config) -> Result<(), PoolError> {
    let limits = config.supervisor.limits;
    limits.check().map_err(PoolError::configuration("limits"))?;
    let (memory, processes) = (limits.memory_limit(), limits.process_limit());
    if memory.is_some() || processes.is_some() {
        config.supervisor.groups = Groups::find();
    }
    let groups = &config.supervisor.groups;
    config.watches_memory = groups.memory_means().is_none();
    config.deadlines.cpu = limits.cpu_time_limit();
    config.deadlines.memory = memory.filter(|_| config.watches_memory);
    let report = &mut config.report;
    match groups.memory_means() {
        _ if memory.is_none() => {}
        Some(means) => report.enforced(Layer::Memory, means),
        None => report.partly(Layer::Memory, WATCHED),
    }
    if limits.cpu_time_limit().is_some() {
        report.enforced(Layer::CpuTime, CPU_MEANS);
    }
    if processes.is_some() {
        let Some(means) = groups.process_means() else {
            let problem = format!("`processes` cannot be enforced: {NO_GROUP}");
            return Err(PoolError::Configuration { field: "limits", problem });
        };
        report.enforced(Layer::ProcessCount, means);
    }
    Ok(())
}
