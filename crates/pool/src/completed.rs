//! Handles in the order in which their tasks end.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::fork::Origin;

use crate::arrivals::Arrivals;
use crate::drive::Shared;
use crate::error::TimedOut;
use crate::handle::Handle;
use crate::wait::only_pool;

/// Yields handles as their tasks end; get one from [`as_completed`].
///
/// It keeps nothing of what it has yielded. Dropping it drops the other handles: their tasks run on.
#[must_use = "it is lazy, and drops its handles when it is dropped"]
pub struct AsCompleted<R> {
    /// Until they are yielded. Their places are their names among the arrivals.
    handles: Vec<Option<Handle<R>>>,
    pending: usize,
    arrivals: Arc<Arrivals>,
    /// The pool of all, if it is one.
    pool: Option<Arc<Shared>>,
    /// Where the arrivals may be used.
    origin: Origin,
}

/// Takes handles, of one pool or several, and yields each when its task has ended: its outcome is there, whatever it is.
///
/// Those whose tasks have ended before come in the order in which they were given.
///
/// ```no_run
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade_pool::Pool::builder().build().unwrap();
/// let handles = (1..10).map(|x| pool.submit(square, x)).collect::<Result<Vec<_>, _>>()?;
/// for handle in brigade_pool::as_completed(handles) {
///     let task = handle.id();
///     println!("{task}: {}", handle.wait()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn as_completed<R>(handles: impl IntoIterator<Item = Handle<R>>) -> AsCompleted<R> {
    let handles: Vec<_> = handles.into_iter().map(Some).collect();
    let pool = only_pool(handles.iter().flatten()).cloned();
    let arrivals = Arc::default();
    for (name, handle) in (0..).zip(handles.iter().flatten()) {
        handle.watch(&arrivals, name);
    }
    AsCompleted { pending: handles.len(), handles, arrivals, pool, origin: Origin::here() }
}

impl<R> AsCompleted<R> {
    /// The next handle, for which it waits at most `timeout`; `None` after the last.
    ///
    /// # Errors
    /// [`TimedOut`] when no further task has ended in time; later ones are yielded later.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Handle<R>>, TimedOut> {
        // A time too long for the clock is as good as none.
        self.next_until(Instant::now().checked_add(timeout))
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Handle<R>>, TimedOut> {
        if self.pending == 0 {
            return Ok(None);
        }
        if !self.origin.is_here() {
            // All of them were submitted before the fork, and are errors here.
            self.pending -= 1;
            return Ok(self.handles.iter_mut().find_map(Option::take));
        }
        let timed_out = TimedOut { pending: self.pending, total: self.handles.len() };
        let name = self.arrivals.next(self.pool.as_ref(), deadline).ok_or(timed_out)?;
        self.pending -= 1;
        let index = usize::try_from(name).unwrap_or(usize::MAX);
        Ok(self.handles.get_mut(index).and_then(Option::take))
    }
}

impl<R> Iterator for AsCompleted<R> {
    type Item = Handle<R>;

    fn next(&mut self) -> Option<Handle<R>> {
        // Without a deadline no time is over.
        self.next_until(None).ok().flatten()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pending, Some(self.pending))
    }
}

impl<R> ExactSizeIterator for AsCompleted<R> {}

impl<R> FusedIterator for AsCompleted<R> {}

impl<R> fmt::Debug for AsCompleted<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AsCompleted")
            .field("pending", &self.pending)
            .field("total", &self.handles.len())
            .finish_non_exhaustive()
    }
}
