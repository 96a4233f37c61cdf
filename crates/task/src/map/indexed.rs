//! Results with the positions of their inputs.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::{Chunks, Map, Turn};
use crate::timeout::{NextUntil, Timeout};
use crate::{TaskError, TimedOut};

/// An iterator over the results of a map with the positions of their inputs; returned by
/// [`indexed`](Map::indexed).
///
/// ```no_run
/// # fn square(x: u64) -> u64 { x * x }
/// # let pool = brigade::Pool::builder().build().unwrap();
/// let mut squares = vec![None; 10];
/// for (index, result) in pool.map_unordered(square, 0..10).indexed() {
///     squares[index] = result.ok();
/// }
/// ```
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct Indexed<M>(M);

impl<M> Indexed<M> {
    pub(super) fn new(map: M) -> Self {
        Self(map)
    }

    /// Limits the time for all results, as [`Map::timeout`] does.
    pub fn timeout(self, timeout: Duration) -> Timeout<Self>
    where
        Self: NextUntil,
    {
        Timeout::new(self, timeout)
    }
}

impl<C: Chunks, R, T> Map<C, R, T> {
    /// Returns the position of the input of the last result.
    pub(super) fn index_of(&self, result: &Result<R, TaskError>) -> usize {
        let of_error = result.as_ref().err().and_then(TaskError::index);
        of_error.unwrap_or_else(|| usize::try_from(self.chunks.position()).unwrap_or(usize::MAX))
    }
}

impl<C, R, T> Iterator for Indexed<Map<C, R, T>>
where
    C: Chunks,
    R: DeserializeOwned + 'static,
    T: Turn<C::Results>,
{
    type Item = (usize, Result<R, TaskError>);

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.0.next()?;
        Some((self.0.index_of(&result), result))
    }
}

impl<C, R, T> NextUntil for Indexed<Map<C, R, T>>
where
    C: Chunks,
    R: DeserializeOwned + 'static,
    T: Turn<C::Results>,
{
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Self::Item>, TimedOut> {
        let result = self.0.next_until(deadline)?;
        Ok(result.map(|result| (self.0.index_of(&result), result)))
    }
}

#[cfg(feature = "futures")]
mod futures {
    use std::task::{Context, Poll};

    use serde::de::DeserializeOwned;

    use super::Indexed;
    use crate::map::{Map, PollChunks, Turn};
    use crate::{AsStream, PollNext};

    impl<C, R, T> Indexed<Map<C, R, T>>
    where
        C: PollChunks,
        R: DeserializeOwned + 'static,
        T: Turn<C::Results>,
    {
        /// Returns the results as a `futures_core::Stream`, as [`Map::into_stream`] does.
        pub fn into_stream(self) -> AsStream<Self> {
            AsStream::new(self)
        }
    }

    impl<C, R, T> PollNext for Indexed<Map<C, R, T>>
    where
        C: PollChunks,
        R: DeserializeOwned + 'static,
        T: Turn<C::Results>,
    {
        fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let result = self.0.poll_next(context);
            result.map(|result| result.map(|result| (self.0.index_of(&result), result)))
        }
    }
}
