//! The pool's public interface.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use brigade_scheduler::{Shutdown, ShutdownReport};
use brigade_task::{Data, Executor, Function, NamedFunction, TaskError};
use brigade_wire::shared::{AllocError, SharedBufMut, WhenFull as BudgetFull};
use brigade_worker::FUNCTIONS;

use crate::at_exit;
use crate::cell::{Attributes, Facts};
use crate::config::{Config, check_workers};
use crate::drive::{Drive, Shared};
use crate::error::{PoolError, SubmitError};
use crate::task::TaskBuilder;
use crate::{Handle, SubmitFuture};

/// A pool of worker processes.
///
/// All methods take `&self`; share a pool by reference, by `Arc`, or as a static. Dropping it does
/// the same as [`shutdown`](Self::shutdown).
///
/// A pool belongs to the process that built it and does not survive `fork`. In a fork (without
/// `exec`), every call on the copy and its handles returns an error ([`PoolError::Forked`] or the
/// equivalent), and dropping them does nothing; the original pool is not affected. A program that
/// daemonizes has to build its pool afterwards: the threads of a pool that was built before end
/// with the original process, and its workers with them.
pub struct Pool {
    drive: Arc<Drive>,
}

impl Pool {
    pub(crate) fn start(config: Config) -> Result<Self, PoolError> {
        Ok(Self { drive: at_exit::listed(Drive::start(config)?) })
    }

    /// Submits a task: `function` is called with `argument` in a worker process. Blocks while the
    /// queue is full.
    ///
    /// `function` is a [`Function`]: a function item or a closure that captures nothing, a key, or
    /// the name of a function of the workers' program. Anything else does not compile:
    ///
    /// ```compile_fail
    /// # let pool = brigade::Pool::builder().build().unwrap();
    /// let captured = std::env::args().count();
    /// let handle = pool.submit(move |x: usize| x + captured, 1);
    /// ```
    ///
    /// # Errors
    /// Returns a [`SubmitError`], which contains the argument, if the pool is shut down or broken,
    /// or if the argument cannot be encoded.
    pub fn submit<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>> {
        const { F::CHECK };
        self.task(function).submit(argument)
    }

    /// Submits a task like [`submit`](Self::submit), but returns an error if the queue is full.
    ///
    /// # Errors
    /// [`SubmitErrorKind::Full`](crate::SubmitErrorKind::Full) if the queue is full;
    /// otherwise as `submit`.
    pub fn try_submit<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>> {
        const { F::CHECK };
        self.task(function).try_submit(argument)
    }

    /// Submits a task like [`submit`](Self::submit), but waits at most `timeout` for room in the
    /// queue.
    ///
    /// # Errors
    /// [`SubmitErrorKind::TimedOut`](crate::SubmitErrorKind::TimedOut) if the queue stayed full;
    /// otherwise as `submit`.
    pub fn submit_timeout<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
        timeout: Duration,
    ) -> Result<Handle<R>, SubmitError<A>> {
        const { F::CHECK };
        self.task(function).submit_timeout(argument, timeout)
    }

    /// Submits a task like [`submit`](Self::submit), as a future that waits for room in the queue
    /// and works with any runtime.
    ///
    /// Nothing is submitted before the future is polled, or if it is dropped before it is ready.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # async fn serve(pool: brigade::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let handle = pool.submit_async(square, 7).await?;
    /// assert_eq!(handle.await?, 49);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn submit_async<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> SubmitFuture<A, R> {
        const { F::CHECK };
        self.task(function).submit_async(argument)
    }

    /// Returns a builder for a task with its own settings: deadlines, retries, a priority, a label.
    pub fn task<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
    ) -> TaskBuilder<'_, A, R> {
        const { F::CHECK };
        TaskBuilder::new(self, &function.target())
    }

    /// Returns the names of the functions that the worker program has registered, by asking a
    /// worker. Workers of this same program have none, unless it runs a `Server`.
    ///
    /// # Errors
    /// A [`TaskError`] if no worker can be asked, or does not answer.
    pub fn registered_functions(&self) -> Result<Vec<String>, TaskError> {
        self.submit(&FUNCTIONS, ()).map_err(SubmitError::into_task_error)?.wait()
    }

    /// Starts all workers and blocks until they are ready.
    ///
    /// # Errors
    /// [`PoolError::Broken`] if no worker can be started, [`PoolError::Start`] if only some can,
    /// [`PoolError::Closed`] after a shutdown.
    pub fn warm_up(&self) -> Result<(), PoolError> {
        self.shared().warm_up()
    }

    /// Runs `function` once in each worker, including workers that have not started yet, and
    /// returns one handle per slot.
    ///
    /// If a worker dies before it starts its task, its replacement runs the task. If the pool
    /// shrinks in the meantime, the tasks of removed slots are cancelled.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn broadcast<F: Function<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Vec<Handle<R>>, SubmitError<A>> {
        const { F::CHECK };
        let (shared, task) = (self.shared(), self.task::<F, A, R, By>(function));
        let cells = task.prepare(&argument).and_then(|(function, encoded)| {
            let copy = || encoded.copy(shared.arguments());
            shared.broadcast(|| task.submission(function.clone(), copy()))
        });
        let cells = cells.map_err(|kind| SubmitError::new(kind, argument))?;
        Ok(cells.into_iter().map(|cell| Handle::new(cell.into_promise())).collect())
    }

    /// Allocates a buffer of `length` bytes with arbitrary content, which workers read without a
    /// copy.
    ///
    /// Blocks while the buffers of the host that are in use leave too little of its share of the
    /// [`buffer_budget`](crate::PoolBuilder::buffer_budget). Where there is no shared memory (over
    /// the ipc link, or with little address space), the buffer is on the heap, and its bytes are
    /// copied into each message.
    ///
    /// ```no_run
    /// # use brigade::SharedBuf;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # brigade::init();
    /// let count_zeros = |buffer: SharedBuf| buffer.iter().filter(|byte| **byte == 0).count();
    /// let pool = brigade::Pool::builder().build()?;
    /// let mut buffer = pool.alloc(1 << 20)?;
    /// buffer.fill(0);
    /// assert_eq!(pool.submit(count_zeros, buffer.freeze())?.wait()?, 1 << 20);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the system has no memory, and in a fork of the process.
    pub fn alloc(&self, length: usize) -> Result<SharedBufMut, AllocError> {
        self.allocate(length, BudgetFull::Wait)
    }

    /// Allocates a buffer like [`alloc`](Self::alloc), but returns an error instead of waiting.
    pub fn try_alloc(&self, length: usize) -> Result<SharedBufMut, AllocError> {
        self.allocate(length, BudgetFull::Fail)
    }

    fn allocate(&self, length: usize, full: BudgetFull) -> Result<SharedBufMut, AllocError> {
        if self.shared().is_forked() {
            return Err(AllocError::Forked);
        }
        match self.shared().arguments() {
            Some(arena) => SharedBufMut::in_arguments(arena, length, full),
            None => Ok(SharedBufMut::on_heap(length)),
        }
    }

    /// Sets the maximum number of workers.
    ///
    /// Surplus workers finish their current task and exit; the others keep running. Additional
    /// workers start when there is work for them.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] if the number is out of range or there are too few cores,
    /// [`PoolError::Broken`], [`PoolError::Closed`].
    pub fn resize(&self, workers: usize) -> Result<(), PoolError> {
        check_workers(workers, "resize")?;
        self.shared().resize(workers)
    }

    /// Stops all idle workers and waits for them to exit. Busy workers exit when they have
    /// finished. The next task starts the workers that it needs.
    ///
    /// # Errors
    /// [`PoolError::Broken`], [`PoolError::Closed`], also if that happens during the wait.
    pub fn quiesce(&self) -> Result<(), PoolError> {
        self.shared().quiesce()
    }

    /// Returns the process ids of the workers that are ready for tasks, in no particular order.
    pub fn worker_pids(&self) -> Vec<u32> {
        self.shared().worker_pids()
    }

    /// Returns the pool's name, used in events, metrics and errors.
    pub fn name(&self) -> &str {
        &self.shared().config.supervisor.pool
    }

    /// Returns the maximum number of workers.
    pub fn workers(&self) -> usize {
        self.shared().target.load(Ordering::Relaxed)
    }

    /// Returns the number of worker processes started so far to replace others.
    pub fn worker_restarts(&self) -> u64 {
        self.shared().restarts()
    }

    /// Returns what of the sandbox and the limits holds on this machine, layer by layer.
    pub fn sandbox_report(&self) -> &brigade_sandbox::SandboxReport {
        &self.shared().config.report
    }

    /// Returns the state of the pool, and the record of its past.
    ///
    /// All numbers belong to the same moment. Taking a snapshot costs some tens of microseconds, in
    /// which the pool does nothing else. In a fork of the process it is empty.
    ///
    /// ```
    /// # brigade::init();
    /// # let pool = brigade::Pool::builder().workers(1).build().unwrap();
    /// pool.submit(|x: u32| x + 1, 1).unwrap().wait().unwrap();
    /// let snapshot = pool.snapshot();
    /// assert_eq!(snapshot.enqueued, snapshot.finished + snapshot.cancelled + snapshot.pending);
    /// assert_eq!(snapshot.run_time.count, 1);
    /// println!("{snapshot}");
    /// ```
    #[cfg(feature = "recording")]
    pub fn snapshot(&self) -> brigade_metrics::PoolSnapshot {
        use brigade_metrics::Source;
        self.shared().measure().summarize()
    }

    /// Accepts no more tasks, and returns at once. What was accepted runs to its end, then the
    /// workers exit.
    ///
    /// Handles and maps keep their outcomes. A [`shutdown`](Self::shutdown), or dropping the pool,
    /// waits for the rest.
    pub fn close(&self) {
        self.drive.begin_shutdown(Shutdown::Drain);
    }

    /// Runs all accepted tasks, then ends the workers and the pool's threads.
    ///
    /// May be called repeatedly and from several threads; each call returns once the pool has
    /// ended. It waits for running tasks without a limit, but a worker that is stopped by a signal
    /// is killed instead.
    ///
    /// Dropping the pool does the same. So does the end of the process for a pool that still lives
    /// then, in a static or with another thread; see [`at_exit`](crate::PoolBuilder::at_exit).
    ///
    /// # Errors
    /// [`PoolError::Broken`] if the pool broke before it was shut down.
    pub fn shutdown(&self) -> Result<ShutdownReport, PoolError> {
        self.drive.shutdown(Shutdown::Drain, None)
    }

    /// Ends the pool in the given mode. After `timeout` it escalates to the next stronger mode:
    /// drain or cancel, then terminate, then kill.
    ///
    /// It therefore returns after `timeout` and at most two stop graces, whatever the workers do.
    /// One that crashes at that time may take another second, or a minute if its core is written.
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
        &self.drive.shared
    }

    /// Returns the attributes of tasks that have nothing rare.
    pub(crate) fn ordinary(&self) -> &Arc<Attributes> {
        &self.drive.ordinary
    }
}

impl Executor for Pool {
    type Facts = Facts;

    fn submit<F: NamedFunction<A, R, By>, A: Data, R: Data, By>(
        &self,
        function: F,
        argument: A,
    ) -> Result<Handle<R>, SubmitError<A>> {
        Self::submit(self, function, argument)
    }

    fn map<F: NamedFunction<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> impl Iterator<Item = Result<R, TaskError>> {
        Self::map(self, function, inputs)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // A broken pool has reported its reason to every task.
        let _ = self.drive.shutdown(Shutdown::Drain, None);
    }
}

brigade_sys::debug_fields! {
    impl Pool { |it| name: it.name(), workers: it.workers(), pids: it.worker_pids() }
}

// Fails to compile if a pool can no longer be shared between threads.
const fn assert_shareable<T: Send + Sync>() {}
const _: () = assert_shareable::<Pool>();
