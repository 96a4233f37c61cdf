//! Iterators that wait for a limited time.

use std::iter::FusedIterator;
use std::time::{Duration, Instant};

use crate::TimedOut;

/// An iterator over results or handles that ends with an error when its time is over; returned by
/// the methods `timeout` of maps and of [`AsCompleted`](crate::AsCompleted).
///
/// Results that have arrived by then are still yielded. The [`TimedOut`] after them is the last
/// item. Dropping this iterator does to the remaining tasks what dropping the iterator inside does,
/// and [`into_inner`](Self::into_inner) returns that one, which goes on where this one ended.
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade::Pool::builder().build().unwrap();
/// let mut sum = 0;
/// for result in pool.map(square, 0..10).timeout(Duration::from_secs(5)) {
///     sum += result??; // "timed out waiting for 3 of 10 tasks", or the failure of a task
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct Timeout<I> {
    inner: I,
    /// `None` if it is beyond the range of the clock.
    deadline: Option<Instant>,
    has_timed_out: bool,
}

/// An iterator that can wait for its next item for a limited time.
#[doc(hidden)]
pub trait NextUntil: Iterator {
    /// Returns the next item like `next`, unless it has not arrived by the deadline.
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Self::Item>, TimedOut>;
}

impl<I: NextUntil> Timeout<I> {
    pub(crate) fn new(inner: I, timeout: Duration) -> Self {
        Self { inner, deadline: Instant::now().checked_add(timeout), has_timed_out: false }
    }

    /// Returns the iterator without the limit.
    pub fn into_inner(self) -> I {
        self.inner
    }
}

impl<I: NextUntil> Iterator for Timeout<I> {
    type Item = Result<I::Item, TimedOut>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_timed_out {
            return None;
        }
        let next = self.inner.next_until(self.deadline);
        self.has_timed_out = next.is_err();
        next.transpose()
    }
}

impl<I: NextUntil + FusedIterator> FusedIterator for Timeout<I> {}
