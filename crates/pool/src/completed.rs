//! Yields handles in the order in which their tasks finish.

#[cfg(feature = "futures")]
mod futures;

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::fork::Origin;

use crate::completion_queue::CompletionQueue;
use crate::drive::Shared;
use crate::error::TimedOut;
use crate::handle::Handle;
use crate::wait::only_pool;

/// Iterator over handles in the order in which their tasks finish; returned by [`as_completed`].
///
/// It keeps nothing of the handles that it has yielded. Dropping it drops the remaining handles;
/// their tasks continue to run.
#[must_use = "it is lazy, and drops its handles when it is dropped"]
pub struct AsCompleted<R> {
    /// The handles that have not been yielded. Their indices are their tokens.
    handles: Vec<Option<Handle<R>>>,
    pending: usize,
    completions: Arc<CompletionQueue>,
    /// The pool of all handles, if they belong to one.
    pool: Option<Arc<Shared>>,
    /// The process that may use the completions.
    origin: Origin,
}

/// Yields each of the handles, of one pool or several, once its task has finished, whatever the
/// outcome.
///
/// Handles whose tasks have already finished come first, in the order given.
///
/// ```no_run
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade::Pool::builder().build().unwrap();
/// let handles = (1..10).map(|x| pool.submit(square, x)).collect::<Result<Vec<_>, _>>()?;
/// for handle in brigade::as_completed(handles) {
///     let task = handle.id();
///     println!("{task}: {}", handle.wait()?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn as_completed<R>(handles: impl IntoIterator<Item = Handle<R>>) -> AsCompleted<R> {
    let handles: Vec<_> = handles.into_iter().map(Some).collect();
    let pool = only_pool(handles.iter().flatten()).cloned();
    let completions = Arc::default();
    for (token, handle) in (0..).zip(handles.iter().flatten()) {
        handle.watch(&completions, token);
    }
    AsCompleted { pending: handles.len(), handles, completions, pool, origin: Origin::here() }
}

impl<R> AsCompleted<R> {
    /// Returns the next handle, waiting at most `timeout` for it, or `None` after the last.
    ///
    /// # Errors
    /// [`TimedOut`] if no further task finished in time. The remaining handles can still be
    /// requested by later calls.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Handle<R>>, TimedOut> {
        // A timeout beyond the range of the clock counts as no timeout.
        self.next_until(Instant::now().checked_add(timeout))
    }

    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Handle<R>>, TimedOut> {
        if self.pending == 0 {
            return Ok(None);
        }
        if !self.origin.is_here() {
            // All handles were submitted before the fork and are errors in this process.
            self.pending -= 1;
            return Ok(self.handles.iter_mut().find_map(Option::take));
        }
        let timed_out = TimedOut { pending: self.pending, total: self.handles.len() };
        let token = Shared::next_finished(self.pool.as_deref(), &self.completions, deadline)
            .ok_or(timed_out)?;
        self.pending -= 1;
        let index = usize::try_from(token).unwrap_or(usize::MAX);
        Ok(self.handles.get_mut(index).and_then(Option::take))
    }
}

impl<R> Iterator for AsCompleted<R> {
    type Item = Handle<R>;

    fn next(&mut self) -> Option<Handle<R>> {
        // Without a deadline there is no timeout.
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
