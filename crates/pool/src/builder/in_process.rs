//! Workers that are threads of this process.

use std::env;

use brigade_sandbox::Limits;
use brigade_supervisor::{ProcessEnv, Stdio};

use super::PoolBuilder;
use crate::config::require;
use crate::error::PoolError;

/// The variable that makes workers threads.
const VARIABLE: &str = "BRIGADE_IN_PROCESS";

impl PoolBuilder {
    /// Runs workers as threads of this process, for debuggers, coverage, sanitizers and flame
    /// graphs. `BRIGADE_IN_PROCESS=1` in the environment does the same for all pools. It is the
    /// only kind of pool on other systems than Linux.
    ///
    /// Tasks, maps, streams, retries, panics and deadlines work as always, over a link in memory.
    /// Everything else needs a process, and does not hold:
    ///
    /// - A task that crashes, aborts, or exits its process ends the program.
    /// - A task that is killed, or exceeds its hard deadline, gets its outcome, and a new worker
    ///   takes the slot. Its thread goes on until the task returns, with all that it uses: its
    ///   locks, its files, its `worker::slot`, and its pieces of a [`resource`](Self::resource).
    ///   The next task has the same slot and pieces.
    /// - Statics are those of the program. `worker::id` and its like return `None` on threads that
    ///   tasks have started, and `worker::expires` has no effect.
    /// - Shared buffers are copied.
    ///
    /// The settings [`limits`](Self::limits), `max_worker_rss`, `cores`, `cores_per_worker`, `env`,
    /// `env_per_slot`, `current_dir`, `stdio` and
    /// [`fresh_process_per_task`](Self::fresh_process_per_task) are left out; a `tracing` event
    /// names those that were set. A sandbox and `worker_command` are errors of
    /// [`build`](Self::build). `init` is not needed.
    ///
    /// ```
    /// let pool = brigade::Pool::builder().in_process().build()?;
    /// assert_eq!(pool.submit(|x: u64| x + 1, 1)?.wait()?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_process(mut self) -> Self {
        self.is_in_process = true;
        self
    }

    /// Returns `true` if workers are threads.
    pub(super) fn has_threads(&self) -> Result<bool, PoolError> {
        let value = env::var_os(VARIABLE).unwrap_or("0".into());
        require(value == "0" || value == "1", "in_process", || {
            format!("{VARIABLE} is `{}`; it must be `1` or `0`", value.display())
        })?;
        Ok(self.is_in_process || value == "1")
    }

    /// Makes workers threads, without the settings of processes.
    pub(super) fn with_threads(mut self) -> Result<Self, PoolError> {
        let wrong = |field, problem: &str| {
            let problem = format!(
                "{problem}, but workers are threads of this process: remove `in_process`, or \
                 {VARIABLE} from the environment"
            );
            Err(PoolError::Configuration { field, problem })
        };
        #[cfg(feature = "sandbox")]
        if self.sandbox.is_some() {
            return wrong("sandbox", "it needs processes");
        }
        if self.config.supervisor.command.is_some() {
            return wrong("worker_command", "it starts another program");
        }
        let supervisor = &mut self.config.supervisor;
        let left_out = [
            ("limits", supervisor.limits != Limits::new()),
            ("max_worker_rss", supervisor.max_rss.is_some()),
            ("cores", self.cores.is_some()),
            ("cores_per_worker", self.cores_per_worker.is_some()),
            ("env", supervisor.env.has_variables()),
            ("current_dir", supervisor.env.has_directory()),
            ("stdio", supervisor.env.stdio != Stdio::Inherit),
            ("fresh_process_per_task", self.is_fresh),
        ];
        let left_out = left_out.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name);
        self.config.left_out = left_out.collect();
        supervisor.thread = Some(brigade_worker::run_on_thread);
        (supervisor.limits, supervisor.max_rss) = (Limits::new(), None);
        supervisor.env = ProcessEnv::default();
        (self.cores, self.cores_per_worker, self.is_fresh) = (None, None, false);
        Ok(self)
    }
}
