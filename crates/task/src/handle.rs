//! The handle of a submitted task.

use std::any::type_name;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use brigade_crash::Stack;
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::codec::CodecError;
use brigade_wire::{Attempt, TaskId, codec};
use serde::de::DeserializeOwned;

use crate::abort_on_drop::AbortOnDrop;
use crate::backend::{Backend, Content, Facts, Promise, Value};
use crate::callbacks::Callback;
use crate::completion_queue::CompletionQueue;
use crate::error::{TaskError, TaskErrorKind};
use crate::outcome::{Outcome, OutcomeKind};
use crate::state::TaskState;
use crate::waiting::Wait;

/// The handle of a submitted task. Dropping it does not stop the task; only the result is dropped.
///
/// A handle is also a [`Future`], which works with any runtime. To wait for several handles, use
/// [`wait`](crate::wait()) or [`as_completed`](crate::as_completed).
#[must_use = "dropping the handle loses the task's result; drop it explicitly if that is intended"]
pub struct Handle<R, F: Facts> {
    task: Promise<F>,
    result: PhantomData<fn() -> R>,
}

/// The result of an [untyped](Handle::untyped) handle, which takes no outcome.
#[derive(Debug)]
pub enum Untyped {}

impl<R, F: Facts> Handle<R, F> {
    /// Creates the handle of a task.
    #[doc(hidden)]
    pub fn new(task: Promise<F>) -> Self {
        Self { task, result: PhantomData }
    }

    /// Returns the task's id, which is unique within its executor.
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Returns the label that the task was submitted with.
    pub fn label(&self) -> Option<&str> {
        self.task.label().map(AsRef::as_ref)
    }

    /// Returns `true` if the outcome has arrived, even if it has been taken since. A cancellation
    /// is an outcome.
    pub fn is_done(&self) -> bool {
        !self.task.is_pending() || self.backend().is_forked()
    }

    /// Returns the current progress of the task.
    pub fn state(&self) -> TaskState {
        // Looked up first, because the outcome may arrive meanwhile.
        let is_running = self.running_since().is_some();
        match self.outcome_kind() {
            Some(OutcomeKind::Cancelled) => TaskState::Cancelled,
            Some(OutcomeKind::Value) => TaskState::Done,
            Some(OutcomeKind::Failure | OutcomeKind::Killed) => TaskState::Failed,
            None if is_running => TaskState::Running,
            None => TaskState::Queued,
        }
    }

    /// Returns how long the task has been running in its worker, or `None` if it is not
    /// [`Running`](TaskState::Running). Nodes of a cluster do not report when they start a task.
    pub fn running_for(&self) -> Option<Duration> {
        let elapsed = clock::now().saturating_since(self.running_since()?);
        self.task.is_pending().then_some(elapsed)
    }

    /// Returns where the task is now, if it waits in a system call: the calls on the stack of the
    /// thread that runs it. Blocks for at most 100 ms, and usually for a tenth of a millisecond.
    ///
    /// The task is looked at from outside, and does not notice. One that computes has to be
    /// interrupted, which `PoolBuilder::interrupt_for_stacks` allows. Without that, its stack
    /// is in the error with which a deadline, a section or [`kill`](Self::kill) ends it.
    ///
    /// Returns `None` if the task is not running, or has ended meanwhile; if it computes, and may
    /// not be interrupted or does not answer; if it has no processor for long, or often waits
    /// shortly; and if this process may not look at its worker: no `/proc`, another user,
    /// `kernel.yama.ptrace_scope` of 2 and more. On a cluster it is always `None`.
    pub fn stack(&self) -> Option<Stack> {
        if self.is_done() { None } else { self.backend().stack(&self.task) }
    }

    fn running_since(&self) -> Option<Monotonic> {
        if self.is_done() { None } else { self.backend().running_since(&self.task) }
    }

    /// Cancels the task. Returns `true` if it had not started and will never run, and `false` if it
    /// is running or has finished.
    ///
    /// On a cluster, a cancellation is recorded like any outcome, so it races exactly: whatever is
    /// recorded first counts, and nodes drop the task. A function that runs is not interrupted, but
    /// its result is dropped. The call blocks until the server has answered, for at most 5 s. After
    /// that it returns `false`, and the cancellation is recorded as soon as the server is back,
    /// unless the task has an outcome by then.
    pub fn cancel(&self) -> bool {
        if self.backend().is_forked() {
            return false;
        }
        if self.task.is_pending() {
            self.backend().cancel(&self.task);
            self.backend().wait_for_end(&self.task);
        }
        self.task.outcome_kind() == Some(OutcomeKind::Cancelled)
    }

    /// Ends the task even if it is running: its worker is then killed and replaced, and no other
    /// task is affected.
    ///
    /// Returns `true` if the task had not started and will never run, or if its worker is being
    /// killed, and `false` if its function has returned: that result counts, so the outcome may be
    /// a value. In no case does the task run again. On a cluster it blocks as
    /// [`cancel`](Self::cancel) does.
    pub fn kill(&self) -> bool {
        if self.is_done() {
            return false;
        }
        let is_killed = self.backend().kill(&self.task);
        self.backend().wait_for_end(&self.task);
        is_killed
            || matches!(self.outcome_kind(), Some(OutcomeKind::Cancelled | OutcomeKind::Killed))
    }

    /// Asks to [`kill`](Self::kill) the task, without waiting for the answer: it arrives as the
    /// outcome.
    pub fn request_kill(&self) {
        if !self.is_done() {
            self.backend().kill(&self.task);
        }
    }

    /// Asks to [`cancel`](Self::cancel) the task, without waiting for the answer: it arrives as the
    /// outcome.
    pub fn request_cancel(&self) {
        if !self.is_done() {
            self.backend().cancel(&self.task);
        }
    }

    /// Returns the handle in a wrapper that [kills](Self::kill) the task when it is dropped, for
    /// futures whose result nobody needs once they are dropped, for example by a timeout.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # async fn serve(pool: brigade::Pool) -> Result<(), Box<dyn std::error::Error>> {
    /// let task = pool.submit_async(square, 7).await?.abort_on_drop();
    /// assert_eq!(task.await?, 49);
    /// # Ok(())
    /// # }
    /// ```
    pub fn abort_on_drop(self) -> AbortOnDrop<R, F> {
        AbortOnDrop::new(self)
    }

    /// Returns a second handle of the task, without the type of its result, so that tasks of
    /// different types can be waited for together. The outcome stays in this handle.
    ///
    /// ```no_run
    /// # use brigade::{Until, as_completed, wait};
    /// # fn lines(text: String) -> usize { text.lines().count() }
    /// # fn upper(text: String) -> String { text.to_uppercase() }
    /// # let pool = brigade::Pool::builder().build().unwrap();
    /// # let text = String::new();
    /// let (lines, upper) = (pool.submit(lines, text.clone())?, pool.submit(upper, text)?);
    /// for ended in as_completed([lines.untyped(), upper.untyped()]) {
    ///     println!("{} is {:?}", ended.id(), ended.state());
    /// }
    /// println!("{} lines: {}", lines.wait()?, upper.wait()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn untyped(&self) -> Handle<Untyped, F> {
        Handle::new(self.task.clone())
    }

    /// Returns the kind of the outcome if it has arrived, even if it has been taken since.
    pub(crate) fn outcome_kind(&self) -> Option<OutcomeKind> {
        if self.backend().is_forked() {
            Some(OutcomeKind::Failure)
        } else {
            self.task.outcome_kind()
        }
    }

    /// Adds `token` to `completions` once the outcome has arrived, which may be immediately.
    pub(crate) fn watch(&self, completions: &Arc<CompletionQueue>, token: u64) {
        if self.backend().is_forked() {
            // Whoever waits on the queue checks it before it sleeps, and begins to wait later, so
            // nobody needs to be woken.
            let _ = completions.add(token);
        } else {
            self.task.watch(completions, token);
        }
    }

    /// Undoes `watch`.
    pub(crate) fn unwatch(&self, completions: &Arc<CompletionQueue>) {
        if !self.backend().is_forked() {
            self.task.unwatch(completions);
        }
    }

    /// Returns a second handle; the caller uses one of them.
    pub(crate) fn duplicate(&self) -> Self {
        Self::new(self.task.clone())
    }

    #[inline]
    pub(crate) fn backend(&self) -> &Arc<dyn Backend<F>> {
        self.task.executor()
    }
}

impl<R: DeserializeOwned + 'static, F: Facts> Handle<R, F> {
    /// Blocks until the outcome arrives and returns it.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    ///
    /// # Panics
    /// If the outcome was taken before, by `wait_timeout`, by `try_get`, or as a future.
    pub fn wait(mut self) -> Result<R, TaskError> {
        if self.task.is_pending() {
            self.backend().wait_for(&self.task, None);
        }
        if !self.backend().is_forked()
            && let Some(Content::FewValue(bytes)) = self.task.content_mut()
        {
            // By far the most common case. To take the value out first takes longer than this.
            let value = codec::decode(bytes);
            return value.map_err(|error| undecodable(self.id(), self.task.label(), &error));
        }
        #[expect(clippy::expect_used, reason = "a mistake of the caller, documented under Panics")]
        let outcome = self.take().expect("the outcome was already taken");
        self.decode(outcome)
    }

    /// Blocks until the outcome arrives or `timeout` elapses. The task continues if it takes
    /// longer.
    ///
    /// Returns `None` on a timeout, or if the outcome was taken before.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        // A timeout beyond the range of the clock counts as no timeout.
        let deadline = Instant::now().checked_add(timeout);
        self.backend().wait_for(&self.task, deadline);
        self.take().map(|outcome| self.decode(outcome))
    }

    /// Returns the outcome if it has arrived and was not taken before. Does not block.
    ///
    /// # Errors
    /// A [`TaskError`] that says why there is no result.
    pub fn try_get(&mut self) -> Option<Result<R, TaskError>> {
        if !self.is_done() {
            self.backend().collect();
        }
        self.take().map(|outcome| self.decode(outcome))
    }

    /// Calls `callback` with the outcome as soon as it arrives, or immediately if it already has.
    ///
    /// Each callback of a handle is called once, in the order of registration, with its own copy of
    /// the value. The outcome can still be taken from the handle, and the handle may be dropped.
    ///
    /// Callbacks run one after the other on a dedicated thread of the executor, never on the
    /// caller's. They may submit tasks, wait for tasks, and shut down or drop the pool. A callback
    /// that panics is reported as a `tracing` event and does not affect the others. A slow callback
    /// delays those of other handles, whose outcomes stay in memory in the meantime.
    ///
    /// A shutdown of the pool returns after all callbacks that were due, unless it is called by a
    /// callback. Callbacks that take longer than `shutdown_with` allows continue to run after it
    /// has returned.
    ///
    /// ```no_run
    /// # fn square(x: u64) -> u64 { x * x }
    /// # let pool = brigade::Pool::builder().build().unwrap();
    /// pool.submit(square, 7)?.on_done(|outcome| match outcome {
    ///     Ok(value) => println!("{value}"),
    ///     Err(error) => eprintln!("{error}"),
    /// });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// If the outcome was taken before, by `wait_timeout`, by `try_get`, or as a future. Also, as
    /// `std::thread::spawn` does, if the system cannot start the thread for the executor's first
    /// callback. In both cases the callback is not called.
    ///
    /// # After a fork
    /// In a fork of the process that built the pool, the callback is called immediately, on the
    /// current thread, with an error.
    pub fn on_done(&self, callback: impl FnOnce(Result<R, TaskError>) + Send + 'static) {
        if self.backend().is_forked() {
            return callback(Err(self.forked()));
        }
        let (task, label) = (self.id(), self.task.label().cloned());
        let of_task = label.clone();
        let run = Box::new(move |outcome| callback(decode(task, of_task.as_ref(), outcome)));
        let callbacks = self.backend().callbacks();
        if let Err(error) = callbacks.register() {
            panic!("cannot start the thread for callbacks: {error}");
        }
        if self.task.on_done(Callback { task, label, run }, callbacks).is_err() {
            callbacks.deregister();
            panic!("the outcome was already taken");
        }
    }

    /// Takes the outcome if it has arrived and was not taken before.
    ///
    /// In a fork of the process this returns an error that says so: the outcome is behind a lock
    /// that another thread may have held at the fork, or in memory that has been reused.
    fn take(&mut self) -> Option<Outcome<F::Value>> {
        if self.backend().is_forked() { Some(Err(self.forked())) } else { self.task.try_take_mut() }
    }

    fn forked(&self) -> TaskError {
        let error = TaskError::new(TaskErrorKind::Forked);
        error.of_task(self.id(), Attempt::first(), self.task.label().cloned())
    }

    fn decode(&self, outcome: Outcome<F::Value>) -> Result<R, TaskError> {
        decode(self.id(), self.task.label(), outcome)
    }
}

fn decode<R: DeserializeOwned + 'static, V: Value>(
    task: TaskId,
    label: Option<&Arc<str>>,
    outcome: Outcome<V>,
) -> Result<R, TaskError> {
    outcome?.decode().map_err(|error| undecodable(task, label, &error))
}

#[cold]
fn undecodable(task: TaskId, label: Option<&Arc<str>>, error: &CodecError) -> TaskError {
    let message = format!("the result cannot be decoded: {}", codec::chain(error));
    let error = TaskError::new(TaskErrorKind::Codec { message });
    error.of_task(task, Attempt::first(), label.cloned())
}

impl<R: DeserializeOwned + 'static, F: Facts> Future for Handle<R, F> {
    type Output = Result<R, TaskError>;

    /// A poll may spin for up to 20 µs, if the executor seems to have no other handle of the pool
    /// to poll and tasks are usually that brief.
    ///
    /// # Panics
    /// If polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.backend().is_forked() {
            return Poll::Ready(Err(self.forked()));
        }
        if self.task.is_pending() && !self.backend().glance(&self.task) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.task.poll(context.waker()) {
            Ok(Some(outcome)) => {
                self.backend().polled(&self.task);
                Poll::Ready(self.decode(outcome))
            }
            Ok(None) => Poll::Pending,
            Err(()) => panic!("the outcome was already taken"),
        }
    }
}

/// The task is never pinned.
impl<R, F: Facts> Unpin for Handle<R, F> {}

brigade_sys::debug_fields! {
    impl<R, F: Facts> Handle<R, F> {
        |it| task: it.id(), label: it.label(), state: it.state(), result: type_name::<R>()
    }
}
