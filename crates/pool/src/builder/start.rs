//! Settings of how worker processes are started.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt::Display;

use brigade_supervisor::{Initializer, Start};
use brigade_task::Data;
use brigade_worker::preload_of;

use super::PoolBuilder;

brigade_sys::setters! {
    impl PoolBuilder;

    /// Sets the way in which worker processes are started. Default: [`Start::Auto`].
    pub fn start(self, mode: Start) { self.config.supervisor.start = mode }

    /// Keeps this number of workers ready beside those that have a task. When a worker ends, one of
    /// them takes its place at once. Default: 0.
    ///
    /// They start when the pool is built, run the initializer, and count neither as
    /// [`workers`](Self::workers) nor toward the tasks that run at a time: which workers are spare
    /// changes all the time. If workers are pinned, each has cores of its own. One takes about a
    /// megabyte.
    pub fn spare_workers(self, workers: usize) { self.spare_workers = Some(workers) }

    /// Runs each task in a process of its own, for code that leaks, keeps global state, or handles
    /// the input of strangers. Everything else about tasks is as always. A chunk of a map is one
    /// task.
    ///
    /// Each worker makes a copy of itself for the next task ahead of time, by `fork`, and never
    /// runs one itself. The copy has what the worker has set up before its first task, such as a
    /// [`preload`](Self::preload)ed table, and nothing of earlier tasks. Nothing runs in it before
    /// the task; what has to, belongs in an [initializer](Self::initializer), with which there are
    /// no copies but workers that run one task each. So all tasks draw the same numbers from a
    /// generator that was used before the copy was made: seed it with `worker::seed()`.
    /// `worker::id` is that of the worker, and `std::process::id` that of the copy. A task that
    /// ends its process ends the worker, too, which is replaced.
    ///
    /// A worker runs one task and is replaced where it cannot or should not copy itself: with
    /// [`Start::Exec`], an initializer, a sandbox, limits or `max_worker_rss`, resources or
    /// `env_per_slot`, over ipc, if `main` starts threads before `init`, and if this process is
    /// number 1 of its container (start the container with an init, such as `docker run --init`).
    /// Then, except for such threads, as many [spare workers](Self::spare_workers) as there are
    /// [`workers`](Self::workers) are kept ready, or none if workers are pinned or slots have
    /// environments of their own, unless that was set.
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
    pub fn fresh_process_per_task(self) { self.is_fresh = true }
}

impl PoolBuilder {
    /// Sets environment variables for each worker by its slot: the device that it uses, a port, a
    /// number of threads. They override those that [`env`](Self::env) sets.
    ///
    /// Slots count from 0, and `brigade::worker::slot()` returns the slot in the worker. A pool has
    /// as many slots as workers, those of [`spare_workers`](Self::spare_workers) included. A
    /// process keeps its slot until it ends, and its replacement gets the same one; a spare worker
    /// that takes over keeps its own. So two workers never have the same variables if `variables`
    /// returns different ones for all slots. The system may still be cleaning up after a worker
    /// that was killed when its replacement starts.
    ///
    /// `variables` is called before each start of a process, on a thread of the pool, and must not
    /// wait for the pool. If it panics, or returns a variable that the system cannot set, the
    /// worker cannot be started, and the error of its tasks names the variable.
    ///
    /// ```
    /// fn device((): ()) -> Option<String> {
    ///     std::env::var("CUDA_VISIBLE_DEVICES").ok()
    /// }
    ///
    /// brigade::init();
    /// let pool = brigade::Pool::builder()
    ///     .workers(2)
    ///     .env_per_slot(|slot| [("CUDA_VISIBLE_DEVICES", slot.to_string())])
    ///     .build()?;
    /// let mut devices = Vec::new();
    /// for handle in pool.broadcast(device, ())? {
    ///     devices.extend(handle.wait()?);
    /// }
    /// assert_eq!(devices, ["0", "1"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn env_per_slot<K, V, I>(
        mut self,
        variables: impl Fn(u32) -> I + Send + Sync + 'static,
    ) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        self.config.supervisor.env.set_by_slot(move |slot| {
            let owned = |(key, value): (K, V)| (key.as_ref().into(), value.as_ref().into());
            variables(slot).into_iter().map(owned).collect()
        });
        self
    }

    /// Runs `function` with `argument` once, in the process from which workers are forked. Tasks
    /// access the returned value with `worker::preloaded::<T>()`, and all workers share its memory
    /// until they write to it: for tables, models and interpreters that take long to load.
    ///
    /// The initializer still runs in each worker. `function` must end all threads that it starts.
    /// If it panics, ends the process, leaves a thread running, or does not return within
    /// [`initializer_timeout`](Self::initializer_timeout), the start of the worker has failed, as
    /// with an [`initializer`](Self::initializer). Where workers are executed and not forked (see
    /// [`Start`]), it runs in each of them.
    ///
    /// Workers share the state of each generator of random numbers that `function` has used, so
    /// they draw the same numbers: seed it again in the initializer, or with `worker::seed()`.
    ///
    /// ```no_run
    /// fn load(path: String) -> std::io::Result<Vec<u8>> {
    ///     std::fs::read(path)
    /// }
    ///
    /// fn look_up(position: usize) -> Option<u8> {
    ///     brigade::worker::preloaded::<Vec<u8>>()?.get(position).copied()
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let pool = brigade::Pool::builder().try_preload(load, "table.bin".to_owned()).build()?;
    /// println!("{:?}", pool.submit(look_up, 5)?.wait()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn preload<F, A: Data, T>(self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> T + Copy + Send + 'static,
        T: Send + Sync + 'static,
    {
        self.try_preload(move |argument| Ok::<T, Infallible>(function(argument)), argument)
    }

    /// Sets a function like [`preload`](Self::preload) that can fail. If it returns an error, the
    /// start has failed for the reason that the error's text gives.
    pub fn try_preload<F, A: Data, T, E>(mut self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
        T: Send + Sync + 'static,
        E: Display + 'static,
    {
        let entry = preload_of(function);
        self.preload = Some(Initializer::new(entry, &argument));
        self
    }
}
