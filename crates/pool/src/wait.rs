//! Waiting for several handles at once.

use std::collections::HashSet;
use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arrivals::Arrivals;
use crate::cell::Ending;
use crate::drive::Shared;
use crate::handle::Handle;

/// What [`wait`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Until {
    /// All tasks have ended.
    All,
    /// A task has ended, in whichever way.
    First,
    /// A task has failed, or all have ended. A cancellation is no failure.
    FirstError,
}

/// Which tasks had ended when a [`wait`] did. Each is in one of the two, once, in the order in which they were given.
#[non_exhaustive]
pub struct Waited<'a, R> {
    /// Those that have an outcome; a cancellation is one.
    pub done: Vec<&'a Handle<R>>,
    /// The others.
    pub pending: Vec<&'a Handle<R>>,
}

/// Waits until so much of the tasks have ended, or for `timeout`; says which have ended by then.
///
/// Nothing is taken from the handles, nothing is cancelled, and tasks of several pools may be waited for together. Several
/// threads may wait for the same handles. One that is given twice counts once.
///
/// A task has failed when it has no value: a value that is an `Err` of the function's is none.
///
/// To go through many handles as their tasks end, use [`as_completed`](crate::as_completed): each call of this looks at
/// all of them.
///
/// ```no_run
/// use std::time::Duration;
/// use brigade_pool::{Until, wait};
///
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade_pool::Pool::builder().build().unwrap();
/// let handles = (1..10).map(|x| pool.submit(square, x)).collect::<Result<Vec<_>, _>>()?;
/// let waited = wait(&handles, Until::All, Duration::from_secs(1));
/// println!("{} are still to come", waited.pending.len());
/// wait(&handles, Until::All, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn wait<'a, R: 'a, I>(
    handles: I,
    until: Until,
    timeout: impl Into<Option<Duration>>,
) -> Waited<'a, R>
where
    I: IntoIterator<Item = &'a Handle<R>>,
{
    // A time too long for the clock is as good as none.
    let deadline = timeout.into().and_then(|timeout| Instant::now().checked_add(timeout));
    let mut seen = HashSet::new();
    let handles: Vec<_> =
        handles.into_iter().filter(|handle| seen.insert(ptr::from_ref(*handle))).collect();
    match until {
        Until::All => wait_for_all(&handles, deadline),
        Until::First => wait_for_one(&handles, |_| true, deadline),
        Until::FirstError => {
            wait_for_one(&handles, |ending| ending == Ending::Failure, deadline);
        }
    }
    let (done, pending) = handles.into_iter().partition(|handle| handle.is_done());
    Waited { done, pending }
}

/// One after the other: while this thread waits for one it collects the answers of others.
fn wait_for_all<R>(handles: &[&Handle<R>], deadline: Option<Instant>) {
    let arrivals = Arc::default();
    for handle in handles.iter().filter(|handle| !handle.is_done()) {
        // Not through the task's own place for a sleeper: several threads may wait for it.
        handle.watch(&arrivals, 0);
        if arrivals.next(Some(handle.shared()), deadline).is_none() {
            return handle.unwatch(&arrivals);
        }
    }
}

/// Waits for one that ends in the wanted way, or for all.
fn wait_for_one<R>(
    handles: &[&Handle<R>],
    is_wanted: impl Fn(Ending) -> bool,
    deadline: Option<Instant>,
) {
    let has_come = |handle: &Handle<R>| handle.ending().is_some_and(&is_wanted);
    if handles.iter().any(|handle| has_come(handle)) {
        return;
    }
    let arrivals = Arc::<Arrivals>::default();
    for (name, handle) in (0..).zip(handles) {
        handle.watch(&arrivals, name);
    }
    let pool = only_pool(handles.iter().copied());
    for _ in handles {
        match arrivals.next(pool, deadline).and_then(|name| usize::try_from(name).ok()) {
            Some(index) if !has_come(handles[index]) => {}
            Some(_) | None => break,
        }
    }
    for handle in handles.iter().filter(|handle| !handle.is_done()) {
        handle.unwatch(&arrivals);
    }
}

/// The pool of the tasks, if it is one: a thread that waits for them then drives it.
pub(crate) fn only_pool<'a, R: 'a>(
    handles: impl IntoIterator<Item = &'a Handle<R>>,
) -> Option<&'a Arc<Shared>> {
    let mut pools = handles.into_iter().map(Handle::shared);
    let first = pools.next()?;
    pools.all(|pool| Arc::ptr_eq(pool, first)).then_some(first)
}

impl<R> fmt::Debug for Waited<'_, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, pending } = self;
        out.debug_struct("Waited").field("done", done).field("pending", pending).finish()
    }
}
