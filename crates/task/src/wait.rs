//! Waits for several handles at once.

use std::collections::HashSet;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backend::{Backend, Facts, park_for};
use crate::completion_queue::CompletionQueue;
use crate::handle::Handle;
use crate::outcome::OutcomeKind;

/// The condition that ends a [`wait`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Until {
    /// All tasks have finished.
    All,
    /// A task has finished, with any outcome.
    First,
    /// A task has failed, or all have finished. A cancellation is not a failure.
    FirstError,
}

/// The handles passed to [`wait`], divided into finished and pending ones. Each handle is in
/// exactly one list, once, in the order given.
#[non_exhaustive]
pub struct Waited<'a, R, F: Facts> {
    /// Handles of tasks that have an outcome; a cancellation is one.
    pub done: Vec<&'a Handle<R, F>>,
    /// Handles of the other tasks.
    pub pending: Vec<&'a Handle<R, F>>,
}

/// Blocks until `until` is satisfied or `timeout` elapses, and reports which tasks have finished.
///
/// The outcomes stay in the handles, nothing is cancelled, and the tasks may belong to several
/// pools, or to several clusters. Several threads may wait for the same handles. A handle that is
/// given twice counts once.
///
/// A returned `Err` is a value, not a failure; a task fails if it panics, crashes, or exceeds a
/// deadline.
///
/// To process many handles in the order in which their tasks finish, use
/// [`as_completed`](crate::as_completed): each call of `wait` looks at all handles.
///
/// ```no_run
/// use std::time::Duration;
/// use brigade::{Until, wait};
///
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade::Pool::builder().build().unwrap();
/// let handles = (1..10).map(|x| pool.submit(square, x)).collect::<Result<Vec<_>, _>>()?;
/// let waited = wait(&handles, Until::All, Duration::from_secs(1));
/// println!("{} are still to come", waited.pending.len());
/// wait(&handles, Until::All, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait<'a, R: 'a, F: Facts, I>(
    handles: I,
    until: Until,
    timeout: impl Into<Option<Duration>>,
) -> Waited<'a, R, F>
where
    I: IntoIterator<Item = &'a Handle<R, F>>,
{
    // A timeout beyond the range of the clock counts as no timeout.
    let deadline = timeout.into().and_then(|timeout| Instant::now().checked_add(timeout));
    let mut seen = HashSet::new();
    let handles: Vec<_> =
        handles.into_iter().filter(|handle| seen.insert(ptr::from_ref(*handle))).collect();
    match until {
        Until::All => wait_for_all(&handles, deadline),
        Until::First => wait_for_one(&handles, |_| true, deadline),
        Until::FirstError => {
            wait_for_one(&handles, OutcomeKind::is_failure, deadline);
        }
    }
    let (done, pending) = handles.into_iter().partition(|handle| handle.is_done());
    Waited { done, pending }
}

/// Waits for one handle after the other: while this thread waits for one, it collects the outcomes
/// of the others.
fn wait_for_all<R, F: Facts>(handles: &[&Handle<R, F>], deadline: Option<Instant>) {
    let completions = Arc::default();
    for handle in handles.iter().filter(|handle| !handle.is_done()) {
        // The task has room for only one sleeper of its own, but several threads may wait for it.
        handle.watch(&completions, 0);
        if next_finished(Some(&**handle.backend()), &completions, deadline).is_none() {
            return handle.unwatch(&completions);
        }
    }
}

/// Waits until a task has finished with a wanted outcome, or all have finished.
fn wait_for_one<R, F: Facts>(
    handles: &[&Handle<R, F>],
    is_wanted: impl Fn(OutcomeKind) -> bool,
    deadline: Option<Instant>,
) {
    let has_come = |handle: &Handle<R, F>| handle.outcome_kind().is_some_and(&is_wanted);
    if handles.iter().any(|handle| has_come(handle)) {
        return;
    }
    let completions = Arc::<CompletionQueue>::default();
    for (token, handle) in (0..).zip(handles) {
        handle.watch(&completions, token);
    }
    let backend = only_backend(handles.iter().copied());
    for _ in handles {
        let token = next_finished(backend.map(AsRef::as_ref), &completions, deadline);
        match token.and_then(|token| usize::try_from(token).ok()) {
            Some(index) if !has_come(handles[index]) => {}
            Some(_) | None => break,
        }
    }
    for handle in handles.iter().filter(|handle| !handle.is_done()) {
        handle.unwatch(&completions);
    }
}

/// Waits for a token of the queue and removes it; returns `None` once the deadline has passed.
///
/// `backend` is the executor of all watched tasks. It is `None` if they belong to several, which
/// then run their tasks without this thread's help.
pub(crate) fn next_finished<F: Facts>(
    backend: Option<&dyn Backend<F>>,
    queue: &CompletionQueue,
    deadline: Option<Instant>,
) -> Option<u64> {
    if let Some(token) = queue.take() {
        return Some(token);
    }
    match backend {
        // With no time left to wait, outcomes that have arrived are still collected.
        Some(backend) if deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
            backend.collect();
        }
        Some(backend) => backend.wait_for(queue, deadline),
        None => park_for(queue, deadline),
    }
    queue.take()
}

/// Returns the executor of the tasks if they all belong to one. A thread that waits for them then
/// collects its outcomes.
pub(crate) fn only_backend<'a, R: 'a, F: Facts>(
    handles: impl IntoIterator<Item = &'a Handle<R, F>>,
) -> Option<&'a Arc<dyn Backend<F>>> {
    let mut backends = handles.into_iter().map(Handle::backend);
    let first = backends.next()?;
    backends.all(|backend| Arc::ptr_eq(backend, first)).then_some(first)
}

brigade_sys::debug_fields! {
    impl<R, F: Facts> Waited<'_, R, F> { done, pending }
}
