//! Settings of how worker processes are started.

use super::PoolBuilder;

impl PoolBuilder {
    /// Keeps this number of workers ready beside those that have a task. When a worker ends, one of
    /// them takes its place at once. Default: 0.
    ///
    /// They start when the pool is built, run the initializer, and count neither as
    /// [`workers`](Self::workers) nor toward the tasks that run at a time: which workers are spare
    /// changes all the time. If workers are pinned, each has cores of its own. One takes about a
    /// megabyte.
    pub fn spare_workers(mut self, workers: usize) -> Self {
        self.spare_workers = Some(workers);
        self
    }

    /// Runs each task in a process of its own, for code that leaks, keeps global state, or handles
    /// the input of strangers. Everything else about tasks is as always.
    ///
    /// The processes start ahead of the tasks: as many [spare workers](Self::spare_workers) as
    /// there are [`workers`](Self::workers) are kept ready, or none if workers are pinned, unless
    /// that was set. A chunk of a map is one task; see
    /// [`max_tasks_per_worker`](Self::max_tasks_per_worker), of which this is the smallest value.
    ///
    /// ```no_run
    /// fn compile(source: String) -> Result<Vec<u8>, String> {
    ///     // A compiler that was written to run once.
    ///     # Ok(source.into_bytes())
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let pool = brigade::Pool::builder().fresh_process_per_task().build()?;
    /// let object = pool.submit(compile, "int main() {}".to_owned())?.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn fresh_process_per_task(mut self) -> Self {
        self.config.scheduler.max_tasks = Some(1);
        self.spares_as_workers = true;
        self
    }
}
