//! The builder of a stream: its function and its settings.

use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::Retry;
use brigade_sys::sync::{Condvar, Mutex};
use brigade_task::function::Here;
use brigade_task::{Data, Function};

use super::arrivals::Arrivals;
use super::machine::{Machine, StreamLimits};
use super::{Stream, share};
use crate::Pool;
use crate::config::require;
use crate::error::PoolError;
use crate::function_ref::FunctionRef;
use crate::task::{TaskOptions, label_of};

/// A stream before its start; returned by [`Pool::stream`].
///
/// It can be cloned, and started any number of times; each start makes a stream of its own.
#[must_use = "a stream is nothing until it is started"]
pub struct StreamBuilder<'pool, A, R> {
    pub(super) pool: &'pool Pool,
    /// The function, or the reason why no worker can call it.
    pub(super) function: Result<FunctionRef, String>,
    /// The same, for arguments with a seed.
    pub(super) seeded: Result<FunctionRef, String>,
    /// The same, for this process; `None` if the function needs a worker.
    pub(super) here: Option<Here<A, R>>,
    pub(super) settings: Settings,
}

/// The settings of a stream.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// `true` if the function emits items.
    pub(super) flat: bool,
    pub(super) limits: StreamLimits,
    /// `None` for all workers of the pool.
    pub(super) workers: Option<usize>,
    pub(super) seed: Option<u64>,
    pub(super) stall_after: Duration,
    pub(super) task: TaskOptions,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            flat: false,
            limits: StreamLimits { per_worker: 2, output: 3, ordered: false },
            workers: None,
            seed: None,
            stall_after: Duration::from_secs(30),
            task: TaskOptions::default(),
        }
    }
}

impl Pool {
    /// Returns a builder for a stream, which applies `function` to inputs as they come and hands
    /// out the results as they are ready; see the [module](crate::stream).
    ///
    /// ```no_run
    /// # use brigade::Pool;
    /// fn load(number: u64) -> Vec<u8> {
    ///     vec![0; 1 << number]
    /// }
    ///
    /// # fn run(pool: Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let stream = pool.stream(load).ordered(true).per_worker(2).output(3).start()?;
    /// for number in 0..4 {
    ///     stream.put(number)?;
    /// }
    /// stream.finish();
    /// while let Some(item) = stream.recv() {
    ///     println!("batch {}: {} bytes", item.id, item.result?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream<F: Function<A, R, By>, A: Data, R: Data + Send, By>(
        &self,
        function: F,
    ) -> StreamBuilder<'_, A, R> {
        const { F::CHECK };
        let target = function.target();
        let task = TaskOptions { label: label_of(&target), ..TaskOptions::default() };
        StreamBuilder {
            pool: self,
            function: FunctionRef::to(&target, self.shared().runs_other_command()),
            seeded: FunctionRef::seeded(&target),
            here: function.here(),
            settings: Settings { task, ..Settings::default() },
        }
    }
}

brigade_sys::setters! {
    impl<A: Data, R: Data + Send> StreamBuilder<'_, A, R>;

    /// Sets whether items are delivered in the order of their ids. Default: `false`, the order of
    /// completion.
    ///
    /// In an ordered stream, a slow input delays the items of later ones, which count as finished
    /// and not received meanwhile.
    pub fn ordered(self, ordered: bool) { self.settings.limits.ordered = ordered }

    /// Sets the number of inputs per worker that may wait in the stream. Default: 2.
    pub fn per_worker(self, inputs: usize) { self.settings.limits.per_worker = inputs }

    /// Sets the number of tasks that the stream may have beyond one per worker, whether they are
    /// with the pool or finished and not received. Default: 3.
    ///
    /// Tasks of less than about 100 µs need more, because workers wait for a caller that receives
    /// and puts: on two cores, 64 doubled the rate of tasks of 3 µs and of 10 µs.
    pub fn output(self, items: usize) { self.settings.limits.output = items }

    /// Limits the stream to as many tasks at a time as this number of workers runs. Default: all
    /// workers of the pool.
    ///
    /// Such a stream submits its next task when a caller puts an input or waits for an item. With
    /// `0`, `put` runs the function itself, in this process, and arguments and results are not
    /// encoded. Deadlines and retries do not apply then. A panic is in the item's error, with its
    /// place, and is not printed.
    pub fn workers(self, workers: usize) { self.settings.workers = Some(workers) }

    /// Sets a number of which `worker::seed()` is made in the stream's tasks, together with the id
    /// of the input. So another run of the program gets the same seeds for the same inputs, however
    /// many workers it has, and whichever of them dies.
    pub fn seed(self, seed: u64) { self.settings.seed = Some(seed) }

    /// Sets the time after which a consumer that waits in vain reports what is pending, and where
    /// the task is that has been running longest, as a `tracing` event. Zero turns that off.
    /// Default: 30 s.
    pub fn stall_after(self, time: Duration) { self.settings.stall_after = time }

    /// Limits the run time of each task; see
    /// [`TaskBuilder::deadline`](crate::TaskBuilder::deadline).
    pub fn deadline(self, limit: Duration) { self.settings.task.deadlines.hard = Some(limit) }

    /// Sets the run time after which a task is asked to stop; see
    /// [`TaskBuilder::soft_deadline`](crate::TaskBuilder::soft_deadline).
    pub fn soft_deadline(self, limit: Duration) { self.settings.task.deadlines.soft = Some(limit) }

    /// Limits the time from when a task leaves the stream for the pool until a worker starts it;
    /// see [`TaskBuilder::queue_deadline`](crate::TaskBuilder::queue_deadline).
    pub fn queue_deadline(self, limit: Duration) {
        self.settings.task.deadlines.queue = Some(limit);
    }

    /// Sets the number of retries of each task; see
    /// [`TaskBuilder::retries`](crate::TaskBuilder::retries).
    pub fn retries(self, retries: u32) { self.settings.task.set_retry(Retry::of(retries)) }

    /// Sets the number of attempts of each task and the pauses between them; see
    /// [`TaskBuilder::retry`](crate::TaskBuilder::retry). A task in its pause is one that the
    /// stream has with the pool; see [`output`](Self::output).
    pub fn retry(self, retry: Retry) { self.settings.task.set_retry(retry) }

    /// Runs a task again after a panic too; see
    /// [`TaskBuilder::retry_panics`](crate::TaskBuilder::retry_panics).
    pub fn retry_panics(self) { self.settings.task.retried_for.panics = true }

    /// Adds an amount of a resource that each task takes while it runs; see
    /// [`TaskBuilder::needs`](crate::TaskBuilder::needs).
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.settings.task.needs.add(&self.pool.shared().config.resources, resource.into(), amount);
    }

    /// Sets the priority of the tasks; see [`TaskBuilder::priority`](crate::TaskBuilder::priority).
    pub fn priority(self, priority: i32) { self.settings.task.priority = priority }

    /// Sets a label, which errors and events show.
    pub fn label(self, label: impl Into<Arc<str>>) { self.settings.task.label = Some(label.into()) }
}

impl<A: Data, R: Data + Send> StreamBuilder<'_, A, R> {
    /// Starts the stream.
    ///
    /// # Errors
    /// [`PoolError::Configuration`] if workers cannot call the function, or there is not what its
    /// tasks need; [`PoolError::Forked`].
    pub fn start(&self) -> Result<Stream<A, R>, PoolError> {
        let shared = self.pool.shared();
        if shared.is_forked() {
            return Err(PoolError::Forked);
        }
        self.settings.task.needs.check().map_err(PoolError::configuration("needs"))?;
        let function = if self.settings.seed.is_some() { &self.seeded } else { &self.function };
        let function = function.clone().map_err(PoolError::configuration("stream"))?;
        let here = self.here.clone().filter(|_| self.settings.workers == Some(0));
        require(here.is_some() || self.settings.workers != Some(0), "workers", || {
            "must be at least 1, because the function runs only in workers: it emits items, or has \
             a name"
                .to_owned()
        })?;
        let settings = self.settings.clone();
        let mut limits = settings.limits;
        if settings.flat {
            // It bounds the items instead.
            limits.output = 0;
        }
        Ok(Stream {
            machine: Mutex::new(Machine::new(limits, share(shared, &settings))),
            shared: Arc::clone(shared),
            function,
            here,
            settings,
            room: Condvar::new(),
            arrivals: Arrivals::default(),
        })
    }
}

brigade_sys::setters! {
    impl<A, T, E> StreamBuilder<'_, A, Result<T, E>>;

    /// Runs a task again if its function returns an `Err` too; see
    /// [`TaskBuilder::retry_errors`](crate::TaskBuilder::retry_errors). An `Err` that the function
    /// of a [flat](Pool::stream_flat) stream emits is an item like others.
    pub fn retry_errors(self) { self.settings.task.retried_for.errors = !self.settings.flat }
}

impl<A, R> Clone for StreamBuilder<'_, A, R> {
    fn clone(&self) -> Self {
        let Self { pool, function, seeded, here, settings } = self;
        let (function, seeded) = (function.clone(), seeded.clone());
        Self { pool, function, seeded, here: here.clone(), settings: settings.clone() }
    }
}

brigade_sys::debug_fields!(impl<A, R> StreamBuilder<'_, A, R> { settings });
