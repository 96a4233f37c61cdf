//! The pool as its users see it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use brigade_wire::{Attempt, codec};
use brigade_worker::function_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::builder::{Builder, MOST_WORKERS, require};
use crate::callee::Callee;
use crate::cell::TaskCell;
use crate::config::Config;
use crate::drive::{Drive, Shared};
use crate::error::{PoolError, SubmitError, SubmitErrorKind};
use crate::handle::Handle;
use crate::machine::Shutdown;
use crate::map::{Map, MapUnordered};
use crate::payload::Argument;
use crate::task::{TaskBuilder, TaskOptions};

/// A pool of worker processes. All methods take `&self`; share it by reference, `Arc` or a static.
///
/// Dropping it does what [`shutdown`](Self::shutdown) does.
///
/// A pool belongs to the process that built it, and does not survive `fork`. In a fork (without `exec`) every call of the copy
/// and of its handles is an error ([`PoolError::Forked`] and its like), and dropping them does nothing; the original goes on
/// as if there were no copy. A program that becomes a daemon builds its pool after that: the threads of a pool that was built
/// before end with the original, and so do its workers.
pub struct Pool {
    drive: Drive,
}

/// What a submitter does when the queue is full.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Room {
    Wait,
    Now,
    Until(Instant),
}

impl Room {
    /// A time too long for the clock is as good as none.
    pub(crate) fn within(timeout: Duration) -> Self {
        Instant::now().checked_add(timeout).map_or(Self::Wait, Self::Until)
    }
}

/// What a shutdown found and did, from its first call to the end of the last worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Tasks that a worker answered during the shutdown, with a value or a failure of their own.
    pub finished: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks whose worker died during the shutdown by itself.
    pub failed: u64,
    /// Tasks that ran when the pool killed their worker.
    pub killed: u64,
    /// Workers that were asked to leave.
    pub workers_stopped: u64,
    /// Workers that had to be killed.
    pub workers_killed: u64,
    /// From the first call to the end.
    pub elapsed: Duration,
}

impl Pool {
    /// Settings for a new pool.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn start(config: Config) -> Result<Self, PoolError> {
        Ok(Self { drive: Drive::start(config)? })
    }

    /// Submits a task: `function` runs with `argument` in a worker process. Waits while the queue is full.
    ///
    /// `function` is a function item, or a closure that captures nothing; anything else does not compile:
    ///
    /// ```compile_fail
    /// # let pool = brigade_pool::Pool::builder().build().unwrap();
    /// let captured = std::env::args().count();
    /// let handle = pool.submit(move |x: usize| x + captured, 1);
    /// ```
    ///
    /// # Errors
    /// [`SubmitError`] gives the argument back: the pool is shut down or broken, or the argument cannot be encoded.
    pub fn submit<F, A, R>(&self, function: F, argument: A) -> Result<Handle<R>, SubmitError<A>>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task(function).submit(argument)
    }

    /// As [`submit`](Self::submit), but a full queue is an error.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Full`] when the queue is full, and those of `submit`.
    pub fn try_submit<F, A, R>(&self, function: F, argument: A) -> Result<Handle<R>, SubmitError<A>>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task(function).try_submit(argument)
    }

    /// As [`submit`](Self::submit), but waits at most `timeout` for room in the queue.
    ///
    /// # Errors
    /// [`SubmitErrorKind::TimedOut`] when the queue stayed full, and those of `submit`.
    pub fn submit_timeout<F, A, R>(
        &self,
        function: F,
        argument: A,
        timeout: Duration,
    ) -> Result<Handle<R>, SubmitError<A>>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.task(function).submit_timeout(argument, timeout)
    }

    /// As [`submit`](Self::submit), for a function that the worker's program has registered by name.
    ///
    /// Such workers are programs of their own, whose `main` runs a `Server`; see
    /// [`Builder::worker_command`]. Nothing compares the types of the two sides: a worker that cannot decode the argument,
    /// or a host that cannot decode the result, gives a codec error that names the type.
    ///
    /// # Errors
    /// Those of `submit`. A name that the worker does not know is an error of the task, which lists the names that it knows.
    pub fn submit_named<A, R>(&self, name: &str, argument: A) -> Result<Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.named_task(name).submit(argument)
    }

    /// As [`submit_named`](Self::submit_named), but a full queue is an error.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Full`] when the queue is full, and those of `submit`.
    pub fn try_submit_named<A, R>(
        &self,
        name: &str,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        self.named_task(name).try_submit(argument)
    }

    /// As [`task`](Self::task), for a function that the worker's program has registered by name.
    pub fn named_task<A, R>(&self, name: &str) -> TaskBuilder<'_, A, R>
    where
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        TaskBuilder::new(self, Callee::named(name))
    }

    /// A task with settings of its own: deadlines, retries, a priority, a label.
    pub fn task<F, A, R>(&self, function: F) -> TaskBuilder<'_, A, R>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        TaskBuilder::new(self, Callee::of(function_of::<F, A, R>(function)))
    }

    /// Applies `function` to each input and yields the results in the order of the inputs.
    ///
    /// It is lazy and bounded: inputs are taken as results are. A task that fails is an item that is an error;
    /// iteration goes on.
    pub fn map<F, I, R>(&self, function: F, inputs: I) -> Map<'_, F, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Fn(I::Item) -> R + Copy + Send + 'static,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        Map::new(self, function, inputs.into_iter())
    }

    /// As [`map`](Self::map), with the results in the order of completion.
    pub fn map_unordered<F, I, R>(
        &self,
        function: F,
        inputs: I,
    ) -> MapUnordered<'_, F, I::IntoIter, R>
    where
        I: IntoIterator,
        F: Fn(I::Item) -> R + Copy + Send + 'static,
        I::Item: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        MapUnordered::new(self, function, inputs.into_iter())
    }

    /// Starts all workers and waits until they are ready.
    ///
    /// # Errors
    /// [`PoolError::Broken`] when no worker can be had, [`PoolError::Start`] when not all can, [`PoolError::Closed`]
    /// after a shutdown.
    pub fn warm_up(&self) -> Result<(), PoolError> {
        self.drive.shared().warm_up()
    }

    /// Runs `function` once in each worker, those that have not started yet included; one handle for each slot.
    ///
    /// A worker that dies before it has begun leaves its task to its replacement. With a pool that becomes smaller
    /// meanwhile, tasks of slots that are gone are cancelled.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn broadcast<F, A, R>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Vec<Handle<R>>, SubmitError<A>>
    where
        F: Fn(A) -> R + Copy + Send + 'static,
        A: Serialize + DeserializeOwned + 'static,
        R: Serialize + DeserializeOwned + 'static,
    {
        let shared = self.drive.shared();
        let callee = Callee::of(function_of::<F, A, R>(function));
        let (callee, encoded) = match self.prepare(&callee, &argument) {
            Ok((callee, encoded)) => (callee, encoded.into_vec()),
            Err(kind) => return Err(SubmitError::new(kind, argument)),
        };
        let cells = shared.broadcast(|| {
            let (limits, _) = TaskOptions::default().terms(&shared.config);
            let encoded = Argument::of(encoded.clone(), shared.arguments());
            TaskCell::new(shared.next_task_ids(1), callee.clone(), encoded, None, limits)
        });
        match cells {
            Ok(cells) => {
                Ok(cells.into_iter().map(|cell| Handle::new(cell, Arc::clone(shared))).collect())
            }
            Err(kind) => Err(SubmitError::new(kind, argument)),
        }
    }

    /// Another number of workers, from now on. Workers that are too many finish what they run and leave; those that stay
    /// are the same processes. More are started when there is work for them.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] when the number is not possible, [`PoolError::Broken`], [`PoolError::Closed`].
    pub fn resize(&self, workers: usize) -> Result<(), PoolError> {
        require((1..=MOST_WORKERS).contains(&workers), "resize", || {
            format!("{workers} is not possible; give 1 to {MOST_WORKERS}")
        })?;
        self.drive.shared().resize(workers)
    }

    /// Gives the processes back that have nothing to do, and waits until they are gone. Those that run something follow
    /// when they have finished. The next task starts what it needs.
    ///
    /// # Errors
    /// [`PoolError::Broken`], [`PoolError::Closed`].
    pub fn quiesce(&self) -> Result<(), PoolError> {
        self.drive.shared().quiesce()
    }

    /// The process ids of the workers that are ready for tasks, in no particular order.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.drive.shared().worker_pids()
    }

    /// What events call the pool.
    pub fn name(&self) -> &str {
        &self.drive.shared().config.name
    }

    /// The most workers at a time.
    pub fn workers(&self) -> usize {
        self.drive.shared().target.load(Ordering::Relaxed)
    }

    /// How many worker processes were started to replace others, so far.
    pub fn worker_restarts(&self) -> u64 {
        self.drive.shared().restarts()
    }

    /// Runs everything that was accepted, then ends the workers and the pool's threads.
    ///
    /// May be called again and from several threads; each call returns when the pool has ended. It waits for
    /// running tasks as long as they run, but not for a worker that is stopped by a signal: that one is killed.
    ///
    /// # Errors
    /// [`PoolError::Broken`] when the pool broke before it was shut down.
    pub fn shutdown(&self) -> Result<ShutdownReport, PoolError> {
        self.drive.shutdown(Shutdown::Drain, None)
    }

    /// Ends the pool in the given way; after `timeout` the next stronger way follows: drain, terminate, kill.
    ///
    /// So it returns soon after `timeout` plus the stop grace, whatever the workers do. Callbacks that are due then have
    /// one more grace.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub fn shutdown_with(
        &self,
        mode: Shutdown,
        timeout: Duration,
    ) -> Result<ShutdownReport, PoolError> {
        self.drive.shutdown(mode, Some(timeout))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.drive.shared()
    }

    pub(crate) fn submit_to<A: Serialize + 'static, R>(
        &self,
        callee: &Result<Callee, String>,
        argument: A,
        options: TaskOptions,
        room: Room,
    ) -> Result<Handle<R>, SubmitError<A>> {
        let shared = self.drive.shared();
        let (callee, encoded) = match self.prepare(callee, &argument) {
            Ok(prepared) => prepared,
            Err(kind) => return Err(SubmitError::new(kind, argument)),
        };
        let (limits, terms) = options.terms(&shared.config);
        let id = shared.next_task_ids(1);
        let cell = TaskCell::new(id, callee, encoded, options.label, limits);
        match shared.submit(&cell, Attempt::first(), options.retries, terms, room) {
            Ok(()) => Ok(Handle::new(cell, Arc::clone(shared))),
            Err(kind) => Err(SubmitError::new(kind, argument)),
        }
    }

    /// A function and an argument as they are sent.
    fn prepare<A: Serialize + 'static>(
        &self,
        callee: &Result<Callee, String>,
        argument: &A,
    ) -> Result<(Callee, Argument), SubmitErrorKind> {
        let shared = self.drive.shared();
        let callee = callee.clone().map_err(|message| SubmitErrorKind::Function { message })?;
        let encoded = Argument::encode(argument, shared.config.message_limit, shared.arguments())
            .map_err(|error| SubmitErrorKind::Codec { message: codec::chain(&error) })?;
        Ok((callee, encoded))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A broken pool has told its reason to every task; there is nobody left to tell it to.
        let _ = self.drive.shutdown(Shutdown::Drain, None);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pool")
            .field("name", &self.name())
            .field("workers", &self.workers())
            .field("pids", &self.worker_pids())
            .finish()
    }
}

// Fails to compile when a pool can no longer be shared between threads.
const fn assert_shareable<T: Send + Sync>() {}
const _: () = assert_shareable::<Pool>();
