//! A task on the host's side: what is sent, where the outcome goes, and how it is described before submission.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::Thread;
use std::time::{Duration, Instant};

use brigade_sys::executable::FunctionOffset;
use brigade_wire::TaskId;
use brigade_worker::function_of;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Handle;
use crate::error::{SubmitError, TaskError};
use crate::machine::TaskRef;
use crate::pool::{Pool, Room};

/// What the machine carries for each task: everything that a worker needs, and the place of the outcome.
///
/// It is dropped with the outcome, so the encoded argument does not outlive its use.
pub(crate) struct PoolTask {
    pub(crate) cell: Arc<TaskCell>,
    pub(crate) function: FunctionOffset,
    pub(crate) argument: Vec<u8>,
    pub(crate) label: Option<Arc<str>>,
}

impl fmt::Debug for PoolTask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PoolTask").field("id", &self.cell.id).finish_non_exhaustive()
    }
}

/// The encoded result, or why there is none.
pub(crate) type RawOutcome = Result<Vec<u8>, TaskError>;

/// Where a task's outcome arrives; shared by the pool and the handle.
///
/// The outcome is put in once, by whoever learns it, and taken out once, by the handle.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) id: TaskId,
    state: Mutex<CellState>,
    done: Condvar,
}

#[derive(Debug)]
struct CellState {
    /// Where the task is in the machine; set when it is accepted.
    place: Option<TaskRef>,
    outcome: Outcome,
    waker: Option<Waker>,
    /// Who sleeps until the outcome is there, and how it is woken.
    sleeper: Option<Sleeper>,
}

/// How a thread sleeps that waits for an outcome.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// Parked.
    Parked(Thread),
    /// On the caller's descriptor of the pool's doorbell.
    AtTheDoorbell,
}

#[derive(Debug)]
enum Outcome {
    Awaited,
    Here(RawOutcome),
    Taken { cancelled: bool },
}

impl TaskCell {
    pub(crate) fn new(id: TaskId) -> Self {
        let state =
            CellState { place: None, outcome: Outcome::Awaited, waker: None, sleeper: None };
        Self { id, state: Mutex::new(state), done: Condvar::new() }
    }

    pub(crate) fn set_place(&self, place: TaskRef) {
        self.lock().place = Some(place);
    }

    pub(crate) fn place(&self) -> Option<TaskRef> {
        self.lock().place
    }

    /// Puts the outcome in and wakes whoever waits. A second outcome would be a defect of the machine.
    ///
    /// True when the one who waits sleeps at the pool's doorbell and is still to be rung.
    #[must_use]
    pub(crate) fn complete(&self, outcome: RawOutcome) -> bool {
        let mut state = self.lock();
        debug_assert!(
            matches!(state.outcome, Outcome::Awaited),
            "a second outcome for {}",
            self.id
        );
        state.outcome = Outcome::Here(outcome);
        let waker = state.waker.take();
        let sleeper = state.sleeper.take();
        drop(state);
        self.done.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        match sleeper {
            Some(Sleeper::Parked(thread)) => {
                thread.unpark();
                false
            }
            Some(Sleeper::AtTheDoorbell) => true,
            None => false,
        }
    }

    /// Whether the outcome is still to come.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.lock().outcome, Outcome::Awaited)
    }

    /// Says who is to be woken when the outcome comes. Look once more before sleeping: it may have come before.
    pub(crate) fn set_sleeper(&self, sleeper: Sleeper) {
        self.lock().sleeper = Some(sleeper);
    }

    /// Nobody sleeps any more.
    pub(crate) fn wake_up(&self) {
        self.lock().sleeper = None;
    }

    /// Whether the outcome is there (or was), and if so whether it is a cancellation.
    pub(crate) fn ended(&self) -> Option<bool> {
        match &self.lock().outcome {
            Outcome::Awaited => None,
            Outcome::Here(outcome) => Some(outcome.as_ref().is_err_and(TaskError::is_cancelled)),
            Outcome::Taken { cancelled } => Some(*cancelled),
        }
    }

    /// The outcome, if it is there and was not taken before.
    pub(crate) fn try_take(&self) -> Option<RawOutcome> {
        Self::take_from(&mut self.lock())
    }

    /// Waits until the outcome is there; `None` when it was taken before or `deadline` has passed.
    pub(crate) fn take_by(&self, deadline: Option<Instant>) -> Option<RawOutcome> {
        let mut state = self.lock();
        while matches!(state.outcome, Outcome::Awaited) {
            state = match deadline {
                None => self.done.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return None;
                    }
                    self.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Self::take_from(&mut state)
    }

    /// Has `waker` woken when the outcome comes; nothing happens if it is there.
    pub(crate) fn notify(&self, waker: &Waker) {
        let mut state = self.lock();
        if matches!(state.outcome, Outcome::Awaited) {
            state.waker = Some(waker.clone());
        }
    }

    /// The outcome, or the promise to wake `waker` when it comes. `Err` when it was taken before.
    pub(crate) fn poll(&self, waker: &Waker) -> Result<Option<RawOutcome>, ()> {
        let mut state = self.lock();
        match state.outcome {
            Outcome::Awaited => {
                state.waker = Some(waker.clone());
                Ok(None)
            }
            Outcome::Here(_) => Ok(Self::take_from(&mut state)),
            Outcome::Taken { .. } => Err(()),
        }
    }

    fn take_from(state: &mut CellState) -> Option<RawOutcome> {
        let Outcome::Here(outcome) = &state.outcome else {
            return None;
        };
        let cancelled = outcome.as_ref().is_err_and(TaskError::is_cancelled);
        match std::mem::replace(&mut state.outcome, Outcome::Taken { cancelled }) {
            Outcome::Here(outcome) => Some(outcome),
            Outcome::Awaited | Outcome::Taken { .. } => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, CellState> {
        // Nothing that panics runs under this lock, except a waker's clone; the state is whole even then.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task with settings of its own; get one from [`Pool::task`].
#[must_use = "a task is nothing until it is submitted"]
pub struct TaskBuilder<'pool, F, A, R> {
    pool: &'pool Pool,
    function: F,
    options: TaskOptions,
    types: PhantomData<fn(A) -> R>,
}

/// What can be set for one task.
#[derive(Debug, Clone, Default)]
pub(crate) struct TaskOptions {
    pub(crate) retries: u32,
    pub(crate) label: Option<Arc<str>>,
}

impl<'pool, F, A, R> TaskBuilder<'pool, F, A, R>
where
    F: Fn(A) -> R + Copy + Send + 'static,
    A: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F) -> Self {
        Self { pool, function, options: TaskOptions::default(), types: PhantomData }
    }

    /// How often the task runs again when its worker dies under it. Only for tasks that may run twice. Default: 0.
    pub fn retries(mut self, retries: u32) -> Self {
        self.set_retries(retries);
        self
    }

    pub(crate) fn set_retries(&mut self, retries: u32) {
        self.options.retries = retries;
    }

    /// What errors and events call the task.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.options.label = Some(label.into());
        self
    }

    /// Submits the task; waits while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit`].
    pub fn submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::Wait)
    }

    /// Submits the task if the queue has room.
    ///
    /// # Errors
    /// As [`Pool::try_submit`].
    pub fn try_submit(&self, argument: A) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::Now)
    }

    /// Submits the task; waits at most `timeout` while the queue is full.
    ///
    /// # Errors
    /// As [`Pool::submit_timeout`].
    pub fn submit_timeout(
        &self,
        argument: A,
        timeout: Duration,
    ) -> Result<Handle<R>, SubmitError<A>> {
        self.submit_with(argument, Room::within(timeout))
    }

    fn submit_with(&self, argument: A, room: Room) -> Result<Handle<R>, SubmitError<A>> {
        let entry = function_of::<F, A, R>(self.function);
        self.pool.submit_entry(entry, argument, self.options.clone(), room)
    }
}

impl<F, A, R> fmt::Debug for TaskBuilder<'_, F, A, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TaskBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}
