//! Results with the positions of their inputs, or with the inputs.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::{Chunks, Map, Turn};
use crate::timeout::{NextUntil, Timeout};
use crate::{TaskError, TimedOut};

/// An iterator over the results of a map with something that tells their inputs; see [`Indexed`]
/// and [`WithInputs`].
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct Paired<M, P> {
    map: M,
    partner: PhantomData<fn() -> P>,
}

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
pub type Indexed<M> = Paired<M, Position>;

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
pub type WithInputs<M> = Paired<M, Input>;

/// Pairs results with the positions of their inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct Position;

/// Pairs results with their inputs.
#[doc(hidden)]
#[derive(Debug)]
pub struct Input;

/// A way to tell the inputs of results.
#[doc(hidden)]
pub trait Partner<C: Chunks> {
    type Item;

    /// Returns what goes with the result of the input at this position.
    fn of(chunks: &mut C, position: usize) -> Option<Self::Item>;
}

impl<C: Chunks> Partner<C> for Position {
    type Item = usize;

    fn of(_: &mut C, position: usize) -> Option<usize> {
        Some(position)
    }
}

impl<C: Chunks> Partner<C> for Input {
    type Item = C::Input;

    /// Only the failure of an empty map has no input.
    fn of(chunks: &mut C, position: usize) -> Option<C::Input> {
        chunks.take_input(u64::try_from(position).ok()?)
    }
}

impl<M, P> Paired<M, P> {
    pub(super) fn new(map: M) -> Self {
        Self { map, partner: PhantomData }
    }

    /// Limits the time for all results, as [`Map::timeout`] does.
    pub fn timeout(self, timeout: Duration) -> Timeout<Self>
    where
        Self: NextUntil,
    {
        Timeout::new(self, timeout)
    }
}

impl<C: Chunks, R, T, P: Partner<C>> Paired<Map<C, R, T>, P> {
    /// Returns the last result with its partner.
    fn pair(&mut self, result: Result<R, TaskError>) -> Option<(P::Item, Result<R, TaskError>)> {
        let chunks = &mut self.map.chunks;
        let of_error = result.as_ref().err().and_then(TaskError::index);
        let position =
            of_error.unwrap_or_else(|| usize::try_from(chunks.position()).unwrap_or(usize::MAX));
        Some((P::of(chunks, position)?, result))
    }
}

impl<C: Chunks, R: DeserializeOwned + 'static, T: Turn<C::Results>, P: Partner<C>> Iterator
    for Paired<Map<C, R, T>, P>
{
    type Item = (P::Item, Result<R, TaskError>);

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.map.next()?;
        self.pair(result)
    }
}

impl<C: Chunks, R: DeserializeOwned + 'static, T: Turn<C::Results>, P: Partner<C>> NextUntil
    for Paired<Map<C, R, T>, P>
{
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Self::Item>, TimedOut> {
        let result = self.map.next_until(deadline)?;
        Ok(result.and_then(|result| self.pair(result)))
    }
}

#[cfg(feature = "futures")]
mod futures {
    use std::task::{Context, Poll};

    use serde::de::DeserializeOwned;

    use super::{Paired, Partner};
    use crate::map::{Map, PollChunks, Turn};
    use crate::{AsStream, PollNext};

    impl<C: PollChunks, R: DeserializeOwned + 'static, T: Turn<C::Results>, P: Partner<C>>
        Paired<Map<C, R, T>, P>
    {
        /// Returns the results as a `futures_core::Stream`, as [`Map::into_stream`] does.
        pub fn into_stream(self) -> AsStream<Self> {
            AsStream::new(self)
        }
    }

    impl<C: PollChunks, R: DeserializeOwned + 'static, T: Turn<C::Results>, P: Partner<C>> PollNext
        for Paired<Map<C, R, T>, P>
    {
        fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            let result = self.map.poll_next(context);
            result.map(|result| result.and_then(|result| self.pair(result)))
        }
    }
}
