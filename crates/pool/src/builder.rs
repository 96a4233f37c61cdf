//! How a pool is configured: every setting is checked before anything starts.

mod check;

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use brigade_cores::CorePool;

use crate::Pool;
use crate::config::{
    CommandLine, DEFAULT_MESSAGE_LIMIT, DEFAULT_QUARANTINE, DEFAULT_QUEUE_LIMIT, DEFAULT_RESTARTS,
    DEFAULT_START_TIMEOUT, DEFAULT_STOP_GRACE, Deadlines, Link,
};
use crate::error::PoolError;
use crate::setup::Draft;
use crate::surroundings::{Stdio, Surroundings};
pub(crate) use check::require;

/// Settings of a [`Pool`]; get one from [`Pool::builder`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    name: String,
    workers: Option<usize>,
    cores: Option<CorePool>,
    cores_per_worker: Option<usize>,
    min_workers: usize,
    idle_timeout: Option<Duration>,
    max_tasks: Option<u64>,
    max_age: Option<Duration>,
    max_rss: Option<u64>,
    journal: Option<PathBuf>,
    quarantine: u32,
    deadlines: Deadlines,
    queue_limit: usize,
    restart_budget: (u32, Duration),
    start_timeout: Duration,
    stop_grace: Duration,
    message_limit: usize,
    link: Link,
    worker_command: Option<CommandLine>,
    worker_version: Option<String>,
    surroundings: Surroundings,
    setup: Draft,
}

/// More processes than this are a slip of the pen.
pub(crate) const MOST_WORKERS: usize = 4096;

/// So many pools may be built inside each other. Deeper is a recursion without an end, of processes.
const MOST_NESTED: u32 = 10;

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            name: "pool".to_owned(),
            workers: None,
            cores: None,
            cores_per_worker: None,
            min_workers: 0,
            idle_timeout: None,
            max_tasks: None,
            max_age: None,
            max_rss: None,
            journal: None,
            quarantine: DEFAULT_QUARANTINE,
            deadlines: Deadlines::default(),
            queue_limit: DEFAULT_QUEUE_LIMIT,
            restart_budget: DEFAULT_RESTARTS,
            start_timeout: DEFAULT_START_TIMEOUT,
            stop_grace: DEFAULT_STOP_GRACE,
            message_limit: DEFAULT_MESSAGE_LIMIT,
            link: Link::Auto,
            worker_command: None,
            worker_version: None,
            surroundings: Surroundings::default(),
            setup: Draft::new(),
        }
    }

    /// The most worker processes at a time; they start when there is work for them.
    /// Default: the cores that this process may use (affinity mask and cgroup quota considered).
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Each worker is pinned to cores of its own from this pool: as many as [`cores_per_worker`](Self::cores_per_worker) says,
    /// or one. They are reserved when the pool is built; a replacement gets those of its predecessor. Without
    /// [`workers`](Self::workers) there are as many workers as free cores suffice for.
    ///
    /// Variables that tell libraries how many threads to start (`OMP_NUM_THREADS` and the like) are set to the number of cores,
    /// unless they are set already.
    pub fn cores(mut self, cores: CorePool) -> Self {
        self.cores = Some(cores);
        self
    }

    /// Each worker is pinned to so many cores of its own. They come from [`cores`](Self::cores), or else from the cores that this
    /// process may use, which all its pools share. Default: workers are not pinned.
    pub fn cores_per_worker(mut self, cores: usize) -> Self {
        self.cores_per_worker = Some(cores);
        self
    }

    /// So many workers are started at once, and kept although they have nothing to do. Default: 0.
    pub fn min_workers(mut self, workers: usize) -> Self {
        self.min_workers = workers;
        self
    }

    /// How long a worker may have nothing to do before its process is given back, as long as there are more than
    /// [`min_workers`](Self::min_workers). Default: for ever.
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// A worker is replaced by a new process after so many tasks, or up to a tenth fewer, so that workers that started
    /// together do not leave together. Maps then send one item at a time, unless `chunk` says otherwise; such a chunk
    /// counts as one task. Default: never.
    pub fn max_tasks_per_worker(mut self, tasks: u64) -> Self {
        self.max_tasks = Some(tasks);
        self
    }

    /// A worker is replaced by a new process after this time, or up to a tenth earlier, once it has done what it runs.
    /// Default: never.
    pub fn max_worker_age(mut self, age: Duration) -> Self {
        self.max_age = Some(age);
        self
    }

    /// A worker that has more than so many bytes resident at the end of a task is replaced by a new process. It looks at
    /// most once a millisecond. Default: no limit.
    pub fn max_worker_rss(mut self, bytes: u64) -> Self {
        self.max_rss = Some(bytes);
        self
    }

    /// Writes down each event and each decision of this pool, for [`journal::replay`](crate::journal::replay): some hundred bytes
    /// for each task, written by whoever submits or collects. The file is made anew, and is whole when the pool and all its
    /// handles are gone. Arguments and results are not in it. Default: nothing is written.
    pub fn journal(mut self, path: impl Into<PathBuf>) -> Self {
        self.journal = Some(path.into());
        self
    }

    /// A task, or an item of a map, under which so many workers have died is not run again, whatever retries it has left. Default: 16.
    pub fn quarantine_after(mut self, deaths: u32) -> Self {
        self.quarantine = deaths;
        self
    }

    /// How long each task may run, from its begin; then its worker is killed. Default: for ever.
    ///
    /// A task may have a deadline of its own ([`TaskBuilder::deadline`](crate::TaskBuilder::deadline)). Items of a map that
    /// are sent together are allowed the time of the chunk in addition: some milliseconds.
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadlines.hard = Some(limit);
        self
    }

    /// As [`TaskBuilder::soft_deadline`](crate::TaskBuilder::soft_deadline), for each task that has none of its own.
    pub fn soft_deadline(mut self, limit: Duration) -> Self {
        self.deadlines.soft = Some(limit);
        self
    }

    /// As [`TaskBuilder::queue_deadline`](crate::TaskBuilder::queue_deadline), for each task that has none of its own.
    pub fn queue_deadline(mut self, limit: Duration) -> Self {
        self.deadlines.queue = Some(limit);
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

    /// Another way to start a worker: by a wrapper, with arguments, or as another program.
    ///
    /// Program, arguments, environment and working folder are taken from `command`. It must end in this very executable,
    /// whose first line of main calls `init` (the handshake compares builds), or in a program that runs a `Server` and
    /// takes tasks by name: see [`Pool::submit_named`].
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

    /// The version that a worker program must have given to its `Server`. Default: any, or none.
    ///
    /// A worker with another version, or without one, is refused, and the reason names both.
    pub fn worker_version(mut self, version: impl Into<String>) -> Self {
        self.worker_version = Some(version.into());
        self
    }

    /// Has `function` run with `argument` in each worker process before its first task, on the thread that runs the
    /// tasks; what it returns is there for them as `worker::state::<T>()`.
    ///
    /// `function` is a function item or a closure that captures nothing. The argument is encoded here, once, and lies in
    /// memory that all workers share and none can change. A panic, an end of the process or no end within
    /// [`initializer_timeout`](Self::initializer_timeout) is a start that failed: it is tried again, and after five in a
    /// row the pool is broken, with the reason in the outcome of each task.
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
    ///     brigade_worker::state::<Lexicon>()?.get(&word).copied()
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade_worker::init();
    /// let words = ["one", "two"].map(String::from).to_vec();
    /// let pool = brigade_pool::Pool::builder().initializer(index, words).build()?;
    /// assert_eq!(pool.submit(find, "two".to_owned())?.wait()?, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn initializer<F, A, T>(mut self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> T + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        T: 'static,
    {
        self.setup.set_initializer(function, &argument);
        self
    }

    /// As [`initializer`](Self::initializer), for a function that may fail: its error is a start that failed, and the
    /// error's text the reason.
    pub fn try_initializer<F, A, T, E>(mut self, function: F, argument: A) -> Self
    where
        F: Fn(A) -> Result<T, E> + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        T: 'static,
        E: Display + 'static,
    {
        self.setup.set_try_initializer(function, &argument);
        self
    }

    /// How long an initializer may take; [`start_timeout`](Self::start_timeout) does not count it. Default: 60 s.
    pub fn initializer_timeout(mut self, timeout: Duration) -> Self {
        self.setup.set_timeout(timeout);
        self
    }

    /// Has `function` run in each worker that leaves because it was asked to, after its last task and on the same thread.
    ///
    /// It does not run in a worker that dies or is killed. It has [`stop_grace`](Self::stop_grace) of time, as leaving has
    /// altogether. A panic in it is told on stderr.
    pub fn finalizer<F: Fn() + Copy + Send + 'static>(mut self, function: F) -> Self {
        self.setup.set_finalizer(function);
        self
    }

    /// Sets a variable in the environment of workers, which otherwise is this process's at the time of their start.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.surroundings.set(key.as_ref(), Some(value.as_ref()));
        self
    }

    /// Takes a variable out of the environment of workers.
    pub fn env_remove(mut self, key: impl AsRef<OsStr>) -> Self {
        self.surroundings.set(key.as_ref(), None);
        self
    }

    /// The working folder of workers. Default: this process's at the time of their start.
    pub fn current_dir(mut self, path: impl AsRef<Path>) -> Self {
        self.surroundings.set_directory(path.as_ref());
        self
    }

    /// Where what workers write to stdout and stderr goes. Default: [`Stdio::Inherit`].
    pub fn stdio(mut self, stdio: Stdio) -> Self {
        self.surroundings.stdio = stdio;
        self
    }

    /// Checks the settings and makes the pool. Workers start with the first tasks.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] names the setting that is wrong; [`PoolError::NotInitialised`] when
    /// `init` has not run in this process; [`PoolError::NestedTooDeep`] in a task of a pool in a task of a pool, and so
    /// on, ten deep; [`PoolError::System`] when a thread cannot be started.
    pub fn build(self) -> Result<Pool, PoolError> {
        if brigade_worker::started_as_worker_without_init() {
            return Err(PoolError::WorkerWithoutInit);
        }
        if self.worker_command.is_none() && !brigade_worker::is_initialised() {
            return Err(PoolError::NotInitialised);
        }
        if let Some(depth) = brigade_worker::context::depth().filter(|depth| *depth >= MOST_NESTED)
        {
            return Err(PoolError::NestedTooDeep { depth, limit: MOST_NESTED });
        }
        Pool::start(self.check()?)
    }
}
