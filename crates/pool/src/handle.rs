//! One submitted task, as its submitter sees it.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_sys::clock;
use brigade_wire::{Attempt, TaskId, codec};
use serde::de::DeserializeOwned;

use crate::arrivals::Arrivals;
use crate::awaited::Awaited;
use crate::callbacks::Callback;
use crate::cell::{Ending, RawOutcome, TaskCell};
use crate::drive::Shared;
use crate::error::{TaskError, TaskErrorKind};

/// A submitted task. Dropping it lets the task run and drops its result.
///
/// It is a [`Future`] as well, and needs no particular runtime. For several handles there are [`wait`](crate::wait())
/// and [`as_completed`](crate::as_completed).
#[must_use = "without its handle a task's result is lost; drop it explicitly if that is meant"]
pub struct Handle<R> {
    cell: Arc<TaskCell>,
    shared: Arc<Shared>,
    result: PhantomData<fn() -> R>,
}

/// How far a task has come.
///
/// A task is `Queued`, then `Running`, then `Done`; or `Queued`, then `Cancelled`; or it is `Done` without having run, when
/// its pool breaks or is shut down. It is `Queued` again when its worker dies before it has begun, or when it is to run
/// once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Not begun, whether it was sent to a worker or not; `cancel` works.
    Queued,
    /// A worker has begun it, and its outcome has not arrived.
    Running,
    /// It has an outcome other than a cancellation: a value or a failure.
    Done,
    /// It was taken back before it began.
    Cancelled,
}

impl<R> Handle<R> {
    pub(crate) fn new(cell: Arc<TaskCell>, shared: Arc<Shared>) -> Self {
        Self { cell, shared, result: PhantomData }
    }

    /// The task's number, never used twice in a pool.
    pub fn id(&self) -> TaskId {
        self.cell.id
    }

    /// What the task was called when it was submitted.
    pub fn label(&self) -> Option<&str> {
        self.cell.label_text()
    }

    /// Whether the outcome is there, or was before it was taken; a cancellation is one.
    pub fn is_done(&self) -> bool {
        !self.cell.is_awaited() || self.shared.is_forked()
    }

    /// How far the task has come, at this moment.
    pub fn state(&self) -> TaskState {
        if self.shared.is_forked() {
            return TaskState::Done;
        }
        match self.cell.ended() {
            Some(true) => TaskState::Cancelled,
            Some(false) => TaskState::Done,
            None => self
                .cell
                .place()
                .map_or(TaskState::Queued, |place| self.shared.state_of(place, &self.cell)),
        }
    }

    /// How long the task has been running, counted from the moment at which its worker began it; `None` unless it is
    /// [`Running`](TaskState::Running).
    pub fn running_for(&self) -> Option<Duration> {
        if self.shared.is_forked() {
            return None;
        }
        let since = self.shared.running_since(self.cell.place()?)?;
        let elapsed = clock::now().saturating_since(since);
        self.cell.is_awaited().then_some(elapsed)
    }

    /// Takes the task back. True when it had not begun and now never will; false when it runs or has ended.
    pub fn cancel(&self) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        match self.cell.ended() {
            Some(cancelled) => cancelled,
            None => self.cell.place().is_some_and(|place| self.shared.cancel(place, &self.cell)),
        }
    }

    /// The kind of the outcome, if it is there or was.
    pub(crate) fn ending(&self) -> Option<Ending> {
        if self.shared.is_forked() { Some(Ending::Failure) } else { self.cell.ending() }
    }

    /// Has `arrivals` told when the outcome is there, which may be now.
    pub(crate) fn watch(&self, arrivals: &Arc<Arrivals>, name: u64) {
        if self.shared.is_forked() {
            // Whoever waits for them looks before it sleeps.
            let _ = arrivals.add(name);
        } else {
            self.cell.watch(arrivals, name);
        }
    }

    /// Undoes `watch`.
    pub(crate) fn unwatch(&self, arrivals: &Arc<Arrivals>) {
        if !self.shared.is_forked() {
            self.cell.unwatch(arrivals);
        }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl<R> Handle<R> {
    /// Ends the task, also while it runs: its worker is killed then and replaced, and no other task is harmed. True when
    /// the task has not begun and now never will, or its worker is being killed; false when it has ended.
    ///
    /// A result that was complete before the kill counts, so the outcome may still be one.
    pub fn kill(&self) -> bool {
        if self.shared.is_forked() {
            return false;
        }
        match self.cell.ended() {
            Some(_) => false,
            None => self.cell.place().is_some_and(|place| self.shared.kill(place, &self.cell)),
        }
    }
}

impl<R: DeserializeOwned + 'static> Handle<R> {
    /// Waits for the outcome.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    ///
    /// # Panics
    /// When the outcome was taken before, by `wait_timeout`, `try_get` or as a future.
    pub fn wait(self) -> Result<R, TaskError> {
        self.shared.wait_for(&*self.cell, None);
        let outcome = self.take().expect("the outcome of a task is taken once");
        self.decode(outcome)
    }

    /// Waits for the outcome at most `timeout`; the task goes on if it takes longer.
    ///
    /// `None` when the time is over, or the outcome was taken before.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        // A time too long for the clock is as good as none.
        let deadline = Instant::now().checked_add(timeout);
        self.shared.wait_for(&*self.cell, deadline);
        self.take().map(|outcome| self.decode(outcome))
    }

    /// The outcome, if it is there and was not taken before.
    ///
    /// # Errors
    /// A [`TaskError`] says why there is no result.
    pub fn try_get(&mut self) -> Option<Result<R, TaskError>> {
        if !self.is_done() {
            self.shared.collect();
        }
        self.take().map(|outcome| self.decode(outcome))
    }

    /// Has `callback` called with the outcome, whatever it is, as soon as it is there; if it is there, now.
    ///
    /// Each of a handle's callbacks is called once, with a value of its own, in the order of registration; who waits for
    /// the handle gets the outcome as well. The handle may be dropped.
    ///
    /// Callbacks run one after the other on a thread that the pool keeps for nothing else, never on the caller's. They
    /// may submit, wait for tasks, and end or drop the pool. One that panics is reported as a `tracing` event, and the
    /// others run. One that takes long holds up those of other handles, whose outcomes stay in memory meanwhile.
    ///
    /// A pool's shutdown returns after the callbacks that were due, unless a callback calls it. Callbacks that take longer
    /// than a [`shutdown_with`](crate::Pool::shutdown_with) allows run on behind it.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # let pool = brigade_pool::Pool::builder().build().unwrap();
    /// pool.submit(square, 7)?.on_done(|outcome| match outcome {
    ///     Ok(value) => println!("{value}"),
    ///     Err(error) => eprintln!("{error}"),
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// When the outcome was taken before, by `wait_timeout`, `try_get` or as a future; and when the system refuses the
    /// pool's first callback its thread, as `std::thread::spawn` does. The callback is not called then.
    ///
    /// # After a fork
    /// In a fork of the process that built the pool the callback is called at once, on this thread, with the error.
    pub fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) {
        if self.shared.is_forked() {
            return callback(Err(self.forked()));
        }
        let (task, label) = (self.cell.id, self.cell.label());
        let of_task = label.clone();
        let run = Box::new(move |outcome| callback(decode(task, of_task, outcome)));
        let callbacks = &self.shared.callbacks;
        if let Err(error) = callbacks.register() {
            panic!("failed to start the thread for callbacks: {error}");
        }
        if self.cell.on_done(Callback { task, label, run }, callbacks).is_err() {
            callbacks.deregister();
            panic!("the outcome of a task is taken once");
        }
    }

    /// The outcome, if it is there and was not taken before. In a fork of the process it is the error that says so: what was
    /// there lies behind a lock that may have been held at the fork, or in memory that is used again.
    fn take(&self) -> Option<RawOutcome> {
        if self.shared.is_forked() { Some(Err(self.forked())) } else { self.cell.try_take() }
    }

    fn forked(&self) -> TaskError {
        let error = TaskError::new(TaskErrorKind::Forked);
        error.of_task(self.cell.id, Attempt::first(), self.cell.label())
    }

    fn decode(&self, outcome: RawOutcome) -> Result<R, TaskError> {
        decode(self.cell.id, self.cell.label(), outcome)
    }
}

fn decode<R: DeserializeOwned + 'static>(
    task: TaskId,
    label: Option<Arc<str>>,
    outcome: RawOutcome,
) -> Result<R, TaskError> {
    outcome?.decode().map_err(|error| {
        let message =
            format!("the result arrived and could not be decoded: {}", codec::chain(&error));
        TaskError::new(TaskErrorKind::Codec { message }).of_task(task, Attempt::first(), label)
    })
}

impl<R: DeserializeOwned + 'static> Future for Handle<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// When polled again after it was ready, as futures may.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.shared.is_forked() {
            return Poll::Ready(Err(self.forked()));
        }
        match self.cell.poll(context.waker()) {
            Ok(Some(outcome)) => Poll::Ready(self.decode(outcome)),
            Ok(None) => Poll::Pending,
            Err(()) => panic!("the outcome of a task is taken once"),
        }
    }
}

impl<R> fmt::Debug for Handle<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Handle")
            .field("task", &self.id())
            .field("label", &self.label())
            .field("state", &self.state())
            .field("result", &format_args!("{}", std::any::type_name::<R>()))
            .finish()
    }
}
