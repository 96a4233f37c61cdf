//! The pool's builder. Every setting is checked before anything starts.

mod build;
mod check;
mod confine;
mod in_process;
mod observe;
mod resources;
mod start;

use std::convert::Infallible;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use brigade_base::Resource;
use brigade_scheduler::Shutdown;
use brigade_supervisor::{Initializer, Stdio};
use brigade_sys::executable::EntryPoint;
use brigade_task::Data;
use brigade_wire::shared::Protection;
use brigade_worker::{finalizer_of, initializer_of};

use crate::Pool;
use crate::config::{Config, Link};
use crate::cores::CorePool;

/// Builds a [`Pool`]; returned by [`Pool::builder`].
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct PoolBuilder {
    workers: Option<usize>,
    spare_workers: Option<usize>,
    /// Each task has a process of its own.
    is_fresh: bool,
    is_in_process: bool,
    cores: Option<CorePool>,
    resources: Vec<(String, Resource)>,
    cores_per_worker: Option<usize>,
    #[cfg(feature = "sandbox")]
    sandbox: Option<brigade_sandbox::Sandbox>,
    preload: Option<Result<Initializer, String>>,
    initializer: Option<Result<Initializer, String>>,
    finalizer: Option<EntryPoint>,
    /// The settings so far; [`build`](Self::build) fills in what follows from those above.
    config: Config,
}

impl Pool {
    /// Returns a builder with the default settings.
    pub fn builder() -> PoolBuilder {
        PoolBuilder::default()
    }
}

brigade_sys::setters! {
    impl PoolBuilder;

    /// Sets the maximum number of worker processes. They start when there is work for them.
    ///
    /// Default: the number of cores this process may use, according to its affinity mask and cgroup
    /// quota.
    pub fn workers(self, workers: usize) { self.workers = Some(workers) }

    /// Pins each worker to its own cores from this pool:
    /// [`cores_per_worker`](Self::cores_per_worker) of them, or one.
    ///
    /// The cores are reserved when the pool is built, and a replacement worker gets those of its
    /// predecessor. Without [`workers`](Self::workers), the pool has as many workers as the free
    /// cores allow.
    ///
    /// Environment variables that tell libraries how many threads to start (such as
    /// `OMP_NUM_THREADS`) are set to the number of cores, unless they are already set.
    #[cfg(feature = "cores")]
    pub fn cores(self, cores: CorePool) { self.cores = Some(cores) }

    /// Pins each worker to this number of cores of its own.
    ///
    /// The cores come from [`cores`](Self::cores) if it was called, otherwise from the cores that
    /// this process may use, which all its pools share. Default: workers are not pinned.
    #[cfg(feature = "cores")]
    pub fn cores_per_worker(self, cores: usize) { self.cores_per_worker = Some(cores) }

    /// Sets the number of workers that start eagerly and stay alive while idle. Default: 0.
    pub fn min_workers(self, workers: usize) { self.config.scheduler.min_workers = workers }

    /// Sets the time after which an idle worker is stopped, as long as there are more than
    /// [`min_workers`](Self::min_workers). Default: never.
    pub fn idle_timeout(self, timeout: Duration) {
        self.config.scheduler.idle_timeout = Some(timeout);
    }

    /// Replaces each worker by a new process after this number of tasks, or up to a tenth fewer, so
    /// that workers that started together are not all replaced at once. Default: never.
    ///
    /// Maps then send one item at a time, unless `chunk` says otherwise; a chunk counts as one
    /// task.
    pub fn max_tasks_per_worker(self, tasks: u64) { self.config.scheduler.max_tasks = Some(tasks) }

    /// Replaces each worker by a new process after this time, or up to a tenth earlier, as soon as
    /// its current task has finished. Default: never.
    pub fn max_worker_age(self, age: Duration) { self.config.scheduler.max_age = Some(age) }

    /// Replaces a worker by a new process if it has more bytes resident at the end of a task, not
    /// counting those of its server. Checked once a millisecond at most. Default: no limit.
    pub fn max_worker_rss(self, bytes: u64) { self.config.supervisor.max_rss = Some(bytes) }

    /// Sets the number of bytes that shared buffers may take before [`alloc`](crate::Pool::alloc)
    /// waits. Default: a quarter of the memory of the machine, or of its control group.
    ///
    /// The workers and the host have equal shares. As much memory is kept after its use, so that
    /// later buffers need no new pages.
    pub fn buffer_budget(self, bytes: usize) { self.config.buffer_budget = bytes }

    /// Sets the protection of buffers that workers have written against their later writes.
    /// Default: [`Protection::Trusted`], and [`Protection::Copied`] in a sandbox.
    pub fn buffer_protection(self, protection: Protection) {
        self.config.buffer_protection = Some(protection);
    }

    /// Records every event and every decision of this pool in a file, for
    /// [`journal::replay`](crate::journal::replay).
    ///
    /// This costs a few hundred bytes per task, written by the thread that submits or collects it.
    /// An existing file is overwritten. The file is complete once the pool and all its handles are
    /// gone. It does not contain arguments or results. Default: no journal.
    pub fn journal(self, path: impl Into<PathBuf>) { self.config.journal = Some(path.into()) }

    /// Sets the number of workers that a task, or an item of a map, may kill. After that it is not
    /// run again, whatever retries it has left. Default: 16.
    pub fn quarantine_after(self, deaths: u32) { self.config.scheduler.quarantine = deaths }

    /// Sets the default run-time limit of tasks. When a task exceeds it, its worker is killed.
    /// Default: no limit.
    ///
    /// A task can override it with [`TaskBuilder::deadline`](crate::TaskBuilder::deadline). Items
    /// of a map that are sent together may take longer by the time budget of their chunk, 16 ms.
    pub fn deadline(self, limit: Duration) { self.config.deadlines.hard = Some(limit) }

    /// Sets the default of [`TaskBuilder::soft_deadline`](crate::TaskBuilder::soft_deadline) for
    /// tasks without their own.
    pub fn soft_deadline(self, limit: Duration) { self.config.deadlines.soft = Some(limit) }

    /// Sets the default of [`TaskBuilder::queue_deadline`](crate::TaskBuilder::queue_deadline) for
    /// tasks without their own.
    pub fn queue_deadline(self, limit: Duration) { self.config.deadlines.queue = Some(limit) }

    /// Sets the pool's name, used in events, metrics and errors. Default: `pool`.
    pub fn name(self, name: impl Into<String>) { self.config.supervisor.pool = name.into() }

    /// Sets the number of tasks that may wait in the queue before `submit` blocks. Default:
    /// 16,777,216.
    pub fn queue_limit(self, tasks: usize) { self.config.scheduler.queue_limit = tasks }

    /// Sets how many workers may die within `per` without having run a task, before the pool gives
    /// up. Default: 100 in 10 s.
    ///
    /// A worker that dies during or after a task does not count: such deaths are bounded by the
    /// number of tasks.
    pub fn restart_budget(self, deaths: u32, per: Duration) {
        self.config.scheduler.restart_limit = deaths;
        self.config.scheduler.restart_window = per;
    }

    /// Sets the longest time from the start of a worker to the end of its handshake. Default: 10 s.
    pub fn start_timeout(self, timeout: Duration) { self.config.supervisor.start_timeout = timeout }

    /// Sets how long a worker that was asked to exit has before it gets SIGTERM, and then before
    /// SIGKILL. Default: 2 s.
    pub fn stop_grace(self, grace: Duration) { self.config.scheduler.stop_grace = grace }

    /// Sets what becomes of the pool if it still lives when the process ends, because `main`
    /// returns or the program calls [`exit`](std::process::exit). Default: [`Shutdown::Drain`].
    ///
    /// A pool that is dropped has ended before. One in a static, or in an `Arc` that another thread
    /// holds, is not dropped, and would lose the tasks that it has accepted. Nothing is waited for
    /// in a program that is killed or aborts, in a fork of the program, and if a task that runs on
    /// a thread calls `exit`.
    ///
    /// ```
    /// use std::sync::LazyLock;
    ///
    /// use brigade::{Pool, Shutdown};
    ///
    /// // Logs are worth no wait.
    /// static POOL: LazyLock<Pool> =
    ///     LazyLock::new(|| Pool::builder().at_exit(Shutdown::Kill).build().unwrap());
    /// ```
    pub fn at_exit(self, mode: Shutdown) { self.config.at_exit = mode }

    /// Sets the maximum size of one encoded argument or result in bytes, up to 4 GiB. Default:
    /// 1 GiB.
    ///
    /// A [`SharedBuf`](brigade_wire::shared::SharedBuf) does not count, unless its bytes are copied
    /// into the message. It is the way for more.
    pub fn message_limit(self, bytes: usize) { self.config.supervisor.message_limit = bytes }

    /// Sets the transport for tasks and outcomes. Default: [`Link::Auto`].
    pub fn link(self, link: Link) { self.config.link = link }

    /// Starts workers by another command: through a wrapper, with arguments, or as another program.
    ///
    /// Program, arguments, environment and working directory are taken from `command`. It has to
    /// end up running either this same executable, with `init` as the first line of `main` (the
    /// handshake compares builds), or a program that runs a `Server` and takes tasks by name: see
    /// [`Pool::submit`].
    pub fn worker_command(self, command: &Command) {
        self.config.supervisor.command = Some(command.into());
    }

    /// Requires this version of the worker program's `Server`. Default: any version, or none.
    ///
    /// A worker with another version, or without one, is refused with an error that names both.
    pub fn worker_version(self, version: impl Into<String>) {
        self.config.supervisor.version = Some(version.into());
    }

    /// Sets how long an initializer may take. This time does not count toward
    /// [`start_timeout`](Self::start_timeout). Default: 60 s.
    pub fn initializer_timeout(self, timeout: Duration) {
        self.config.supervisor.setup.timeout = timeout;
    }

    /// Sets an environment variable for workers. The rest of their environment is that of this
    /// process at the time they start.
    pub fn env(self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.config.supervisor.env.set(key.as_ref(), Some(value.as_ref()));
    }

    /// Removes a variable from the environment of workers.
    pub fn env_remove(self, key: impl AsRef<OsStr>) {
        self.config.supervisor.env.set(key.as_ref(), None);
    }

    /// Sets the working directory of workers. Default: that of this process at the time they start.
    pub fn current_dir(self, path: impl AsRef<Path>) {
        self.config.supervisor.env.set_directory(path.as_ref());
    }

    /// Sets the destination of the workers' stdout and stderr. Default: [`Stdio::Inherit`].
    pub fn stdio(self, stdio: Stdio) { self.config.supervisor.env.stdio = stdio }
}

impl PoolBuilder {
    /// Runs `function` with `argument` in each worker process before its first task, on the thread
    /// that runs the tasks. Tasks access the returned value with `worker::state::<T>()`.
    /// In a forked worker it runs after the fork: seed generators there, and open connections.
    /// `function` is a function item or a closure that captures nothing. The argument is encoded
    /// once, by this call, into read-only memory that all workers share. If the function panics,
    /// ends the process, or does not return within
    /// [`initializer_timeout`](Self::initializer_timeout), the start has failed. It is tried again;
    /// after five failures in a row the pool is broken, and the outcome of each task gives the
    /// reason.
    ///
    /// ```no_run
    /// # use std::collections::HashMap;
    /// type Lexicon = HashMap<String, u32>;
    ///
    /// fn index(words: Vec<String>) -> Lexicon {
    ///     words.into_iter().zip(0..).collect()
    /// }
    ///
    /// fn find(word: String) -> Option<u32> {
    ///     brigade::worker::state::<Lexicon>()?.get(&word).copied()
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let words = ["one", "two"].map(String::from).to_vec();
    /// let pool = brigade::Pool::builder().initializer(index, words).build()?;
    /// assert_eq!(pool.submit(find, "two".to_owned())?.wait()?, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    /// A large table belongs in a [`SharedBuf`](brigade_wire::shared::SharedBuf): all workers read
    /// one copy of it in place, and those that start later do, too.
    ///
    /// ```no_run
    /// use brigade::{SharedBuf, worker};
    ///
    /// fn look_up(position: usize) -> Option<u8> {
    ///     worker::state::<SharedBuf>()?.get(position).copied()
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let table = SharedBuf::from(std::fs::read("table.bin")?);
    /// let pool = brigade::Pool::builder().initializer(|table: SharedBuf| table, table).build()?;
    /// println!("{:?}", pool.submit(look_up, 5)?.wait()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn initializer<F, A: Data, T>(self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> T + Copy + Send + 'static,
        T: 'static,
    {
        self.try_initializer(move |argument| Ok::<T, Infallible>(function(argument)), argument)
    }

    /// Sets an initializer like [`initializer`](Self::initializer), for a function that can fail.
    /// If it returns an error, the start has failed for the reason that the error's text gives.
    pub fn try_initializer<F, A: Data, T, E>(mut self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
        T: 'static,
        E: Display + 'static,
    {
        let entry = initializer_of(function);
        self.initializer = Some(Initializer::new(entry, &argument));
        self
    }

    /// Runs `function` in each worker that exits on request, after its last task and on the same
    /// thread.
    ///
    /// It does not run in a worker that dies or is killed. It has to finish within
    /// [`stop_grace`](Self::stop_grace), which is the time for the whole exit. If it panics, the
    /// worker reports that on stderr.
    pub fn finalizer<F: Fn() + Copy + Send + 'static>(mut self, function: F) -> Self {
        self.finalizer = Some(finalizer_of(function));
        self
    }
}
