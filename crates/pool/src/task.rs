//! The builder of a single task: its function and its settings.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use brigade_scheduler::{Constraints, Retry};
use brigade_task::Data;
use brigade_task::function::Target;
use brigade_wire::codec;

use crate::Handle;
use crate::SubmitFuture;
use crate::cell::{Rare, TaskCell};
use crate::chunk::RetriedFor;
use crate::config::Config;
use crate::deadlines::{Deadlines, TaskDeadlines};
use crate::error::{SubmitError, SubmitErrorKind};
use crate::function_ref::FunctionRef;
use crate::needs::TaskNeeds;
use crate::payload::{Argument, KeptParts};
use crate::pool::Pool;
use crate::submission::Submission;
use crate::when_full::WhenFull;

/// A task with its own settings; returned by [`Pool::task`].
#[must_use = "a task is nothing until it is submitted"]
pub struct TaskBuilder<'pool, A, R> {
    pool: &'pool Pool,
    /// The function, or the reason why no worker can call it, which fails the submission.
    function: Result<FunctionRef, String>,
    /// `None` for a task without any, like almost all.
    options: Option<Box<TaskOptions>>,
    types: PhantomData<fn(A) -> R>,
}

/// Settings of one task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskOptions {
    pub(crate) retries: u32,
    /// Number of attempts at the task elsewhere.
    pub(crate) earlier_attempts: u32,
    pub(crate) retry: Retry,
    pub(crate) retried_for: RetriedFor,
    pub(crate) label: Option<Arc<str>>,
    pub(crate) priority: i32,
    pub(crate) deadlines: Deadlines,
    pub(crate) needs: TaskNeeds,
}

impl TaskOptions {
    pub(crate) fn set_retry(&mut self, retry: Retry) {
        self.retries = retry.retries();
        self.retry = retry;
    }

    /// Returns a task with these settings.
    fn submission(&self, pool: &Pool, function: FunctionRef, encoded: Argument) -> Submission {
        let shared = pool.shared();
        let (deadlines, constraints) = self.constraints(&shared.config);
        let id = shared.next_task_ids(1);
        let span = shared.open_span(id, self.label.as_ref(), None);
        let rare = Rare::of(self.label.clone(), deadlines, self.retried_for, span);
        let cell = TaskCell::new(Some(pool.ordinary()), id, function, encoded, rare);
        Submission { cell, retries: self.retries, constraints }
    }

    /// Resolves the settings against the pool's defaults, for the task and for the scheduler.
    #[inline]
    pub(crate) fn constraints(
        &self,
        config: &Config,
    ) -> (Option<Box<TaskDeadlines>>, Option<Box<Constraints>>) {
        let waits = !self.retry.is_immediate()
            || self.retried_for != RetriedFor::default()
            || self.earlier_attempts > 0;
        let has_deadlines = !self.deadlines.are_none() || !config.deadlines.are_none();
        if self.priority == 0 && !has_deadlines && !waits && self.needs.are_none() {
            return (None, None);
        }
        self.rare_constraints(config)
    }

    fn rare_constraints(
        &self,
        config: &Config,
    ) -> (Option<Box<TaskDeadlines>>, Option<Box<Constraints>>) {
        let limits = self.deadlines.or(config.deadlines);
        let mut deadlines = TaskDeadlines::new(limits, config.scheduler.stop_grace);
        if let Some(deadlines) = &mut deadlines {
            deadlines.own_memory = self.deadlines.memory;
        }
        let effective = deadlines.map_or(limits, |deadlines| deadlines.limits);
        let mut constraints = Constraints::default();
        constraints.queue_limit = effective.queue;
        constraints.hard_limit = effective.hard;
        constraints.cpu_limit = effective.cpu;
        constraints.priority = self.priority;
        constraints.needs = self.needs.get();
        constraints.earlier_attempts = self.earlier_attempts;
        constraints.retry = self.retry;
        constraints.retries_panics = self.retried_for.panics;
        constraints.retries_errors = self.retried_for.errors;
        constraints.alone = self.deadlines.memory.is_some();
        constraints.memory_limit = limits.memory.filter(|_| config.watches_memory);
        (deadlines.map(Box::new), Some(Box::new(constraints)))
    }
}

brigade_sys::setters! {
    impl<A: Data, R: Data> TaskBuilder<'_, A, R>;

    /// Limits the run time of the task.
    ///
    /// If the task exceeds it, the worker is killed, and the outcome is
    /// [`DeadlineExceeded`](crate::TaskErrorKind::DeadlineExceeded). A result that was complete
    /// before that still counts.
    pub fn deadline(self, limit: Duration) { self.options().deadlines.hard = Some(limit) }

    /// Sets the run time after which `worker::cancelled()` returns `true` in the task, so that it
    /// can clean up and return.
    ///
    /// If the task has not returned by its [`deadline`](Self::deadline), or, without one, within
    /// the pool's [`stop_grace`](crate::PoolBuilder::stop_grace), its worker is killed.
    pub fn soft_deadline(self, limit: Duration) { self.options().deadlines.soft = Some(limit) }

    /// Limits the time from submission until a worker starts the task. When it is exceeded, the
    /// task fails without having run.
    pub fn queue_deadline(self, limit: Duration) { self.options().deadlines.queue = Some(limit) }

    /// Limits the processor time of the task, that of all its threads together. The outcome of a
    /// task that exceeds it is [`LimitExceeded`](crate::TaskErrorKind::LimitExceeded).
    pub fn cpu_time(self, limit: Duration) { self.options().deadlines.cpu = Some(limit) }

    /// Limits the memory of the task, in bytes above what its worker has when it begins. The
    /// outcome of a task that exceeds it is [`LimitExceeded`](crate::TaskErrorKind::LimitExceeded).
    ///
    /// The task runs in a worker that has no other task. The limit is exact if the pool has a
    /// [limit](crate::Limits::memory) too and makes control groups; see there.
    pub fn memory(self, bytes: u64) { self.options().deadlines.memory = Some(bytes) }

    /// Adds an amount of a [resource](crate::PoolBuilder::resource) that the task takes while it
    /// runs. It starts when a worker is free and all that it needs is left. In a pause between two
    /// attempts it has nothing.
    ///
    /// If there is no such resource, or not as much of it in all, submitting the task is an error.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        let declared = &self.pool.shared().config.resources;
        self.options().needs.add(declared, resource.into(), amount);
    }

    /// Sets the priority. Tasks with a higher priority are sent to workers first; tasks of equal
    /// priority in the order of submission. Default: 0.
    ///
    /// Each step of priority is worth ten seconds of waiting, so that no task waits forever. Tasks
    /// already sent to a worker, to hide the latency of the link, are not overtaken; that is up
    /// to four milliseconds of work, or one task of up to 50 ms.
    pub fn priority(self, priority: i32) { self.options().priority = priority }

    /// Sets how many times the task is run again after its worker died while running it or its
    /// run-time deadline passed. Use it only for tasks that may safely run twice. Default: 0.
    pub fn retries(self, retries: u32) { self.options().set_retry(Retry::of(retries)) }

    /// Sets how often, and after which pauses, the task is run again after its worker died while
    /// running it or its run-time deadline passed, and after other failures that
    /// [`retry_panics`](Self::retry_panics) and [`retry_errors`](Self::retry_errors) name.
    ///
    /// During a pause the task has no worker, and counts in the queue. Jitter is made of the task's
    /// id, the number of the attempt and [`Retry::seed`].
    ///
    /// ```
    /// use brigade::Retry;
    /// use std::time::Duration;
    ///
    /// fn fetch(page: u32) -> Result<u32, String> {
    ///     match brigade::worker::attempt() {
    ///         Some(attempt) if attempt.get() < 3 => Err("busy".to_owned()),
    ///         _ => Ok(page),
    ///     }
    /// }
    ///
    /// brigade::init();
    /// let pool = brigade::Pool::builder().workers(1).build()?;
    /// let retry = Retry::new().attempts(5).delay(Duration::from_millis(10)).jitter(0.5);
    /// let handle = pool.task(fetch).retry(retry).retry_errors().submit(7)?;
    /// assert_eq!(handle.wait()?, Ok(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry(self, retry: Retry) { self.options().set_retry(retry) }

    /// Counts the attempts at the task on from those that were made elsewhere, as by other nodes of
    /// a cluster.
    #[doc(hidden)]
    pub fn __earlier_attempts(self, number: u32) { self.options().earlier_attempts = number }

    /// Runs the task again after a panic too, as often as [`retry`](Self::retry) or
    /// [`retries`](Self::retries) allows. After the last attempt the panic is the outcome.
    pub fn retry_panics(self) { self.options().retried_for.panics = true }

    /// Sets a label, which errors and events show. Default: the name of a key, and none for other
    /// functions.
    pub fn label(self, label: impl Into<Arc<str>>) { self.options().label = Some(label.into()) }
}

impl<'pool, A: Data, R: Data> TaskBuilder<'pool, A, R> {
    #[inline]
    pub(crate) fn new(pool: &'pool Pool, target: &Target<'_>) -> Self {
        let function = FunctionRef::to(target, pool.shared().runs_other_command());
        let with = |label| TaskOptions { label: Some(label), ..TaskOptions::default() };
        let options = label_of(target).map(|label| Box::new(with(label)));
        Self { pool, function, options, types: PhantomData }
    }

    fn options(&mut self) -> &mut TaskOptions {
        self.options.get_or_insert_default()
    }

    /// Submits the task. Blocks while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit`].
    pub fn submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, WhenFull::Wait)
    }

    /// Submits the task, or returns an error if the queue is full.
    ///
    /// # Errors
    /// As [`Pool::try_submit`].
    pub fn try_submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, WhenFull::Fail)
    }

    /// Submits the task. Blocks for at most `timeout` while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit_timeout`].
    pub fn submit_timeout(
        &self,
        argument: A,
        timeout: Duration,
    ) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, WhenFull::within(timeout))
    }

    /// Submits the task. The future waits while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit_async`].
    pub fn submit_async(&self, argument: A) -> SubmitFuture<A, R> {
        let task = self.unsubmitted(&argument);
        SubmitFuture::new(argument, task.map(|task| task.into_future(self.pool.shared())))
    }

    fn submit_with(&self, argument: A, when_full: WhenFull) -> Result<Handle<R>, SubmitError<A>> {
        let shared = self.pool.shared();
        // Almost all arguments are small, and are not moved.
        if !KeptParts::suits(&argument, shared.most_kept()) {
            return self
                .submit_task(self.unsubmitted(&argument), when_full)
                .map_err(|kind| SubmitError::new(kind, argument));
        }
        let (encoded, kept) = Argument::keep(argument);
        let task = self.function().map(|it| self.submission(it, encoded));
        self.submit_task(task, when_full)
            .map_err(|kind| SubmitError::new(kind, KeptParts::give_back(kept)))
    }

    #[inline]
    fn submit_task(
        &self,
        task: Result<Submission, SubmitErrorKind>,
        when_full: WhenFull,
    ) -> Result<Handle<R>, SubmitErrorKind> {
        let Submission { mut cell, retries, constraints } = task?;
        self.pool.shared().submit(&mut cell, None, retries, constraints, when_full)?;
        Ok(Handle::new(cell.into_promise()))
    }

    /// Makes the task, which is not submitted yet.
    #[inline]
    fn unsubmitted(&self, argument: &A) -> Result<Submission, SubmitErrorKind> {
        let (function, encoded) = self.prepare(argument)?;
        Ok(self.submission(function, encoded))
    }

    /// Returns the task as it is submitted.
    #[inline]
    pub(crate) fn submission(&self, function: FunctionRef, encoded: Argument) -> Submission {
        let (pool, shared) = (self.pool, self.pool.shared());
        if self.options.is_none() && shared.config.deadlines.are_none() && !shared.wants_spans() {
            let id = shared.next_task_ids(1);
            let cell = TaskCell::new(Some(pool.ordinary()), id, function, encoded, None);
            return Submission { cell, retries: 0, constraints: None };
        }
        let options = self.options.as_deref().cloned().unwrap_or_default();
        options.submission(pool, function, encoded)
    }

    /// Returns the function, if it and the resources exist.
    #[inline]
    fn function(&self) -> Result<FunctionRef, SubmitErrorKind> {
        self.options.as_ref().map_or(Ok(()), |options| options.needs.check())?;
        self.function.clone().map_err(|message| SubmitErrorKind::Function { message })
    }

    /// Resolves the function and encodes the argument.
    #[inline]
    pub(crate) fn prepare(&self, argument: &A) -> Result<(FunctionRef, Argument), SubmitErrorKind> {
        let shared = self.pool.shared();
        let function = self.function()?;
        let limit = shared.config.supervisor.message_limit;
        let keeps_parts = shared.most_kept() > 0;
        let encoded = Argument::encode(argument, limit, shared.arguments(), keeps_parts)
            .map_err(|error| SubmitErrorKind::Codec { message: codec::chain(&error) })?;
        Ok((function, encoded))
    }
}

brigade_sys::setters! {
    impl<A, T, E> TaskBuilder<'_, A, Result<T, E>>;

    /// Runs the task again if its function returns an `Err` too, as often as
    /// [`retry`](Self::retry) or [`retries`](Self::retries) allows. After the last attempt the
    /// `Err` is the value of the task.
    pub fn retry_errors(self) { self.options.get_or_insert_default().retried_for.errors = true }
}

/// Returns the label of a task unless it gets another one: the name of a key.
#[inline]
pub(crate) fn label_of(target: &Target<'_>) -> Option<Arc<str>> {
    match target {
        Target::Key { name, .. } => Some(Arc::from(*name)),
        Target::Item { .. } | Target::Name(_) => None,
    }
}

brigade_sys::debug_fields!(impl<A, R> TaskBuilder<'_, A, R> { function, options });
