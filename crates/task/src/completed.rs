//! Yields handles in the order in which their tasks finish.

#[cfg(feature = "futures")]
mod futures;

use std::iter::FusedIterator;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_sys::fork::Origin;

use crate::backend::{Backend, Facts};
use crate::completion_queue::CompletionQueue;
use crate::error::TimedOut;
use crate::handle::Handle;
use crate::timeout::{NextUntil, Timeout};
use crate::wait::{next_finished, only_backend};

/// Iterator over handles in the order in which their tasks finish; returned by [`as_completed`].
///
/// It keeps nothing of the handles that it has yielded. Dropping it drops the remaining handles;
/// their tasks continue to run.
#[must_use = "it is lazy, and drops its handles when it is dropped"]
pub struct AsCompleted<R, F: Facts> {
    /// The handles that have not been yielded. Their indices are their tokens.
    handles: Vec<Option<Handle<R, F>>>,
    pending: usize,
    completions: Arc<CompletionQueue>,
    /// The executor of all handles, if they belong to one.
    backend: Option<Arc<dyn Backend<F>>>,
    /// The process that may use the completions.
    origin: Origin,
}

/// Yields each of the handles, of one executor or several, once its task has finished, whatever the
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
pub fn as_completed<R, F: Facts>(
    handles: impl IntoIterator<Item = Handle<R, F>>,
) -> AsCompleted<R, F> {
    let handles: Vec<_> = handles.into_iter().map(Some).collect();
    let backend = only_backend(handles.iter().flatten()).cloned();
    let completions = Arc::default();
    for (token, handle) in (0..).zip(handles.iter().flatten()) {
        handle.watch(&completions, token);
    }
    AsCompleted { pending: handles.len(), handles, completions, backend, origin: Origin::here() }
}

impl<R, F: Facts> AsCompleted<R, F> {
    /// Limits the time for all handles together, from now on. After it, the iterator yields the
    /// handles whose tasks have finished, and then a [`TimedOut`] as its last item. The other tasks
    /// continue to run.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn square(x: u64) -> u64 { x * x }
    /// # let pool = brigade::Pool::builder().build().unwrap();
    /// let handles = (1..10).map(|x| pool.submit(square, x)).collect::<Result<Vec<_>, _>>()?;
    /// for handle in brigade::as_completed(handles).timeout(Duration::from_secs(5)) {
    ///     println!("{}", handle?.wait()?);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn timeout(self, timeout: Duration) -> Timeout<Self> {
        Timeout::new(self, timeout)
    }

    /// Returns the next handle, waiting at most `timeout` for it, or `None` after the last.
    ///
    /// # Errors
    /// [`TimedOut`] if no further task finished in time. The remaining handles can still be
    /// requested by later calls.
    pub fn next_timeout(&mut self, timeout: Duration) -> Result<Option<Handle<R, F>>, TimedOut> {
        // A timeout beyond the range of the clock counts as no timeout.
        self.next_until(Instant::now().checked_add(timeout))
    }
}

impl<R, F: Facts> NextUntil for AsCompleted<R, F> {
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Handle<R, F>>, TimedOut> {
        if self.pending == 0 {
            return Ok(None);
        }
        if !self.origin.is_here() {
            // All handles were submitted before the fork and are errors in this process.
            self.pending -= 1;
            return Ok(self.handles.iter_mut().find_map(Option::take));
        }
        let timed_out = TimedOut { pending: self.pending, total: self.handles.len() };
        let token =
            next_finished(self.backend.as_deref(), &self.completions, deadline).ok_or(timed_out)?;
        self.pending -= 1;
        let index = usize::try_from(token).unwrap_or(usize::MAX);
        Ok(self.handles.get_mut(index).and_then(Option::take))
    }
}

impl<R, F: Facts> Iterator for AsCompleted<R, F> {
    type Item = Handle<R, F>;

    fn next(&mut self) -> Option<Handle<R, F>> {
        // Without a deadline there is no timeout.
        self.next_until(None).ok().flatten()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.pending, Some(self.pending))
    }
}

impl<R, F: Facts> ExactSizeIterator for AsCompleted<R, F> {}

impl<R, F: Facts> FusedIterator for AsCompleted<R, F> {}

brigade_sys::debug_fields! {
    impl<R, F: Facts> AsCompleted<R, F> {
        |it| pending: it.pending, total: it.handles.len()
    }
}
