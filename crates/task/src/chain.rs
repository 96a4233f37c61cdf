//! Chains of tasks: `Handle::then` and `when_all`, over the callbacks of handles.
//!
//! A [`Chain`] is settled once, by a [`Settler`], which is a part of a callback. It settles the
//! chain even if it is dropped without having been used, because the callback has panicked. No code
//! of the user and no waker runs under the lock.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use brigade_sys::fork::Origin;
use brigade_sys::sync::{Condvar, Mutex};
use serde::de::DeserializeOwned;

use crate::backend::Backend;
use crate::callbacks::runs_callbacks;
use crate::{Handle, SubmitError, TaskError, TaskErrorKind};

/// A value that follows from tasks; returned by [`Handle::then`] and [`when_all`].
///
/// It is a future as well. Dropping it cancels nothing.
pub struct Chain<R>(Arc<Shared<R>>);

struct Shared<R> {
    state: Mutex<State<R>>,
    settled: Condvar,
    origin: Origin,
}

enum State<R> {
    /// With the waker of the future, if it was polled.
    Open(Option<Waker>),
    /// Another chain follows.
    Followed(Next<R>),
    Settled(Result<R, TaskError>),
    Taken,
}

type Next<R> = Box<dyn FnOnce(Result<R, TaskError>) + Send>;

/// Settles a chain, at the latest when it is dropped.
#[doc(hidden)]
#[must_use = "dropping it settles the chain with an error"]
pub struct Settler<R>(Option<Arc<Shared<R>>>);

/// Something whose value a chain can have: a handle, another chain, and the result of a submission.
pub trait Follow {
    /// The value.
    type Value;

    #[doc(hidden)]
    fn settle(self, settler: Settler<Self::Value>);
}

impl<R: Send + 'static> Chain<R> {
    fn new() -> (Self, Settler<R>) {
        let state = Mutex::new(State::Open(None));
        let shared = Arc::new(Shared { state, settled: Condvar::new(), origin: Origin::here() });
        (Self(Arc::clone(&shared)), Settler(Some(shared)))
    }

    /// Calls `next` with the value as soon as it is there, and returns the chain of what follows;
    /// see [`Handle::then`]. If the value is there already, this thread calls it.
    pub fn then<F: Follow>(self, next: impl FnOnce(R) -> F + Send + 'static) -> Chain<F::Value>
    where
        F::Value: Send + 'static,
    {
        follow(self, next)
    }

    /// Returns `true` if the value or an error is there.
    pub fn is_done(&self) -> bool {
        !self.0.origin.is_here() || !matches!(*self.0.state.lock(), State::Open(_))
    }

    /// Blocks until the value is there.
    ///
    /// # Errors
    /// The error of the first task that failed, [`Cancelled`](TaskErrorKind::Cancelled) if a
    /// function given to `then` has panicked, and [`Forked`](TaskErrorKind::Forked) in a fork of
    /// the process.
    ///
    /// # Panics
    /// In a callback, where the value may never come: it may need the thread that waits. Use
    /// [`then`](Self::then).
    pub fn wait(mut self) -> Result<R, TaskError> {
        loop {
            if let Some(outcome) = self.wait_timeout(Duration::MAX) {
                return outcome;
            }
        }
    }

    /// Blocks until the value is there, for at most `timeout`. Returns `None` if it is not, or was
    /// returned before.
    ///
    /// # Panics
    /// As [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Result<R, TaskError>> {
        assert!(
            !runs_callbacks(),
            "a callback cannot wait for a chain, which may need its thread: use `then`"
        );
        if !self.0.origin.is_here() {
            return Some(Err(forked()));
        }
        let until = Instant::now().checked_add(timeout);
        let mut state = self.0.state.lock();
        while matches!(*state, State::Open(_)) {
            match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return None,
                Some(left) => state = self.0.settled.wait_timeout(state, left).0,
                None => state = self.0.settled.wait(state),
            }
        }
        take(&mut state)
    }
}

impl<R, B: Backend> Handle<R, B>
where
    R: DeserializeOwned + Send + 'static,
{
    /// Calls `next` with the value of the task as soon as it is there, and returns the chain of
    /// what follows: the task that `next` submits.
    ///
    /// `next` runs as a [callback](Self::on_done), on a thread of the executor. It is not called if
    /// the task fails; the chain then ends with the task's error. If `next` panics, that is
    /// reported as an event, and the chain ends as cancelled.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use brigade::{Pool, when_all};
    ///
    /// fn count(line: String) -> usize {
    ///     line.split(' ').count()
    /// }
    ///
    /// fn sum(counts: Vec<usize>) -> usize {
    ///     counts.iter().sum()
    /// }
    ///
    /// brigade::init();
    /// let pool = Arc::new(Pool::builder().workers(2).build()?);
    /// let lines = ["to be", "or not to be"].map(str::to_owned);
    /// let counts: Vec<_> = lines.into_iter().map(|line| pool.submit(count, line)).collect();
    /// let total = when_all(counts).then({
    ///     let pool = Arc::clone(&pool);
    ///     move |counts| pool.submit(sum, counts.into_iter().flatten().collect())
    /// });
    /// assert_eq!(total.wait()?, 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// As [`on_done`](Self::on_done).
    pub fn then<F: Follow>(self, next: impl FnOnce(R) -> F + Send + 'static) -> Chain<F::Value>
    where
        F::Value: Send + 'static,
    {
        follow(self, next)
    }
}

/// Returns a chain whose value is that of all tasks, in their order, once the last has ended. A
/// task that failed has its error there.
///
/// It takes handles, chains, and results of submissions.
///
/// # Panics
/// As [`Handle::on_done`].
pub fn when_all<F: Follow>(
    all: impl IntoIterator<Item = F>,
) -> Chain<Vec<Result<F::Value, TaskError>>>
where
    F::Value: Send + 'static,
{
    let (chain, settler) = Chain::new();
    let all: Vec<F> = all.into_iter().collect();
    if all.is_empty() {
        settler.settle(Ok(Vec::new()));
        return chain;
    }
    let outcomes = all.iter().map(|_| None).collect();
    let gathered =
        Arc::new(Mutex::new(Gathered { left: all.len(), outcomes, settler: Some(settler) }));
    for (position, one) in all.into_iter().enumerate() {
        let gathered = Arc::clone(&gathered);
        let (own, own_settler) = Chain::new();
        own.on_done(Box::new(move |outcome| {
            let whole = gathered.lock().add(position, outcome);
            if let Some((settler, outcomes)) = whole {
                settler.settle(Ok(outcomes));
            }
        }));
        one.settle(own_settler);
    }
    chain
}

/// The outcomes so far.
struct Gathered<R> {
    left: usize,
    outcomes: Vec<Option<Result<R, TaskError>>>,
    settler: Option<Settler<Vec<Result<R, TaskError>>>>,
}

/// All outcomes, and who waits for them.
type Whole<R> = (Settler<Vec<Result<R, TaskError>>>, Vec<Result<R, TaskError>>);

impl<R> Gathered<R> {
    fn add(&mut self, position: usize, outcome: Result<R, TaskError>) -> Option<Whole<R>> {
        self.outcomes[position] = Some(outcome);
        self.left -= 1;
        if self.left > 0 {
            return None;
        }
        Some((self.settler.take()?, self.outcomes.drain(..).flatten().collect()))
    }
}

fn follow<O, F>(one: O, next: impl FnOnce(O::Value) -> F + Send + 'static) -> Chain<F::Value>
where
    O: Follow,
    O::Value: Send + 'static,
    F: Follow,
    F::Value: Send + 'static,
{
    let (chain, settler) = Chain::new();
    let (own, own_settler) = Chain::new();
    own.on_done(Box::new(move |outcome| match outcome {
        Ok(value) => next(value).settle(settler),
        Err(error) => settler.settle(Err(error)),
    }));
    one.settle(own_settler);
    chain
}

impl<R> Chain<R> {
    /// Calls `next` with the outcome: now, or when it is there.
    fn on_done(self, next: Next<R>) {
        let mut state = self.0.state.lock();
        if let Some(outcome) = take(&mut state) {
            drop(state);
            return next(outcome);
        }
        *state = State::Followed(next);
    }
}

impl<R> Settler<R> {
    fn settle(mut self, outcome: Result<R, TaskError>) {
        self.settle_once(outcome);
    }

    fn settle_once(&mut self, outcome: Result<R, TaskError>) {
        let Some(shared) = self.0.take() else { return };
        let mut state = shared.state.lock();
        match mem::replace(&mut *state, State::Taken) {
            State::Followed(next) => {
                drop(state);
                next(outcome);
            }
            State::Open(waker) => {
                *state = State::Settled(outcome);
                shared.settled.notify_all();
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            State::Settled(_) | State::Taken => {}
        }
    }
}

impl<R> Drop for Settler<R> {
    fn drop(&mut self) {
        self.settle_once(Err(TaskError::new(TaskErrorKind::Cancelled)));
    }
}

fn take<R>(state: &mut State<R>) -> Option<Result<R, TaskError>> {
    match mem::replace(state, State::Taken) {
        State::Settled(outcome) => Some(outcome),
        other => {
            *state = other;
            None
        }
    }
}

fn forked() -> TaskError {
    TaskError::new(TaskErrorKind::Forked)
}

impl<R: Send + 'static> Follow for Chain<R> {
    type Value = R;

    fn settle(self, settler: Settler<R>) {
        if !self.0.origin.is_here() {
            return settler.settle(Err(forked()));
        }
        self.on_done(Box::new(move |outcome| settler.settle(outcome)));
    }
}

impl<R: DeserializeOwned + Send + 'static, B: Backend> Follow for Handle<R, B> {
    type Value = R;

    fn settle(self, settler: Settler<R>) {
        self.on_done(move |outcome| settler.settle(outcome));
    }
}

impl<F: Follow, A> Follow for Result<F, SubmitError<A>> {
    type Value = F::Value;

    fn settle(self, settler: Settler<F::Value>) {
        match self {
            Ok(one) => one.settle(settler),
            Err(error) => settler.settle(Err(error.into_task_error())),
        }
    }
}

impl<R: Send + 'static> Future for Chain<R> {
    type Output = Result<R, TaskError>;

    /// # Panics
    /// If it is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.0.origin.is_here() {
            return Poll::Ready(Err(forked()));
        }
        let waker = context.waker().clone();
        let mut state = self.0.state.lock();
        if let Some(outcome) = take(&mut state) {
            return Poll::Ready(outcome);
        }
        let State::Open(place) = &mut *state else { panic!("a chain was polled after its end") };
        let replaced = place.replace(waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl<R> fmt::Debug for Chain<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Chain").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Settler<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Settler").finish_non_exhaustive()
    }
}
