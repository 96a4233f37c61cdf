//! Results with their inputs.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::{Chunks, Map, Turn};
use crate::timeout::{NextUntil, Timeout};
use crate::{TaskError, TimedOut};

/// An iterator over the results of a map with their inputs; returned by
/// [`with_inputs`](Map::with_inputs).
///
/// ```no_run
/// # fn word_count(path: String) -> usize { path.len() }
/// # let pool = brigade::Pool::builder().build().unwrap();
/// # let paths = ["a".to_owned(), "b".to_owned()];
/// for (path, result) in pool.map_unordered(word_count, paths).with_inputs() {
///     match result {
///         Ok(words) => println!("{path}: {words} words"),
///         Err(error) => eprintln!("{path}: {error}"),
///     }
/// }
/// ```
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct WithInputs<M>(M);

impl<M> WithInputs<M> {
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

impl<C: Chunks, R, T> WithInputs<Map<C, R, T>> {
    /// Returns the last result with its input. Only the failure of an empty map has none.
    fn pair(&mut self, result: Result<R, TaskError>) -> Option<(C::Input, Result<R, TaskError>)> {
        let position = u64::try_from(self.0.index_of(&result)).ok()?;
        Some((self.0.chunks.take_input(position)?, result))
    }
}

impl<C, R, T> Iterator for WithInputs<Map<C, R, T>>
where
    C: Chunks,
    R: DeserializeOwned + 'static,
    T: Turn<C::Results>,
{
    type Item = (C::Input, Result<R, TaskError>);

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.0.next()?;
        self.pair(result)
    }
}

impl<C, R, T> NextUntil for WithInputs<Map<C, R, T>>
where
    C: Chunks,
    R: DeserializeOwned + 'static,
    T: Turn<C::Results>,
{
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Self::Item>, TimedOut> {
        let result = self.0.next_until(deadline)?;
        Ok(result.and_then(|result| self.pair(result)))
    }
}

#[cfg(feature = "futures")]
mod futures {
    use std::task::{Context, Poll};

    use serde::de::DeserializeOwned;

    use super::WithInputs;
    use crate::map::{Map, PollChunks, Turn};
    use crate::{AsStream, PollNext};

    impl<C, R, T> WithInputs<Map<C, R, T>>
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

    impl<C, R, T> PollNext for WithInputs<Map<C, R, T>>
    where
        C: PollChunks,
        R: DeserializeOwned + 'static,
        T: Turn<C::Results>,
    {
        fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let result = self.0.poll_next(context);
            result.map(|result| result.and_then(|result| self.pair(result)))
        }
    }
}
