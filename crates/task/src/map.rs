//! Iterators over the results of a function that is applied to many inputs.
//!
//! A pool and a cluster send inputs in chunks, each in its own way: they implement [`Chunks`]. The
//! order of the results, the settings and the iterators are the same.

mod paired;
mod turn;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::{Duration, Instant};

use brigade_base::Retry;
use serde::de::DeserializeOwned;

use crate::timeout::{NextUntil, Timeout};
use crate::{TaskError, TimedOut};
pub use paired::{Indexed, Input, Paired, Partner, Position, WithInputs};
pub use turn::{Arrival, InOrder, Turn};

/// The chunks of a map.
#[doc(hidden)]
pub trait Chunks: fmt::Debug {
    /// Results of consecutive inputs.
    type Results: ChunkResults;
    type Input;

    /// Returns the next result, unless it has not arrived by the deadline. `turn` takes the results
    /// to yield next out of those that have arrived. Takes no inputs after the deadline.
    fn next_until<R: DeserializeOwned + 'static, T: Turn<Self::Results>>(
        &mut self,
        turn: &mut T,
        deadline: Option<Instant>,
    ) -> Result<Option<Result<R, TaskError>>, TimedOut>;

    /// Returns the position of the input whose value was returned last.
    fn position(&self) -> u64;

    /// Keeps the inputs until they are taken.
    fn keep_inputs(&mut self);

    /// Takes the input at this position. One that was not sent is taken from the iterator.
    fn take_input(&mut self, position: u64) -> Option<Self::Input>;

    /// Applies a setting.
    fn set(&mut self, setting: Setting);
}

/// A setting that all maps have.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum Setting {
    /// Number of inputs that may be taken ahead of the results that were yielded, at least 1.
    Window(usize),
    /// Number of items of each chunk, at least 1.
    Chunk(usize),
    /// The hard deadline of an item.
    Deadline(Duration),
    /// The attempts at an item.
    Retry(Retry),
    /// An item runs again after a panic.
    RetryPanics,
    /// An item runs again after its function has returned an `Err`.
    RetryErrors,
    /// A resource, and the amount that a chunk takes while it runs.
    Needs(String, u64),
    /// Chunks run one after the other.
    OneAtATime,
}

/// Results of consecutive inputs.
#[doc(hidden)]
pub trait ChunkResults {
    /// Returns their positions in the order of the inputs.
    fn positions(&self) -> Range<u64>;
}

/// Chunks whose inputs may have seeds.
#[doc(hidden)]
pub trait Seeded: Chunks {
    fn set_seed(&mut self, seed: u64);
}

/// Chunks that wait in a queue among those of others.
#[doc(hidden)]
pub trait Queued: Chunks {
    type Priority;
    type Requirements;

    fn set_priority(&mut self, priority: Self::Priority);

    fn set_requirements(&mut self, requirements: Self::Requirements);
}

/// An iterator over the results in the order of the inputs; returned by the `map` of a pool, a
/// cluster and a batch.
///
/// It is lazy: inputs are taken only as results are taken. A task that fails yields an error, and
/// the iteration continues. Dropping the iterator cancels the items that have not started, except
/// those of a batch.
#[must_use = "an iterator does nothing until it is used"]
pub struct Map<C: Chunks, R, T = InOrder<<C as Chunks>::Results>> {
    chunks: C,
    turn: T,
    types: PhantomData<fn() -> R>,
}

/// An iterator over the results in the order of completion; returned by `map_unordered`.
///
/// It works like [`Map`], but a slow item does not delay the results of others.
pub type MapUnordered<C, R> = Map<C, R, Arrival>;

impl<C: Chunks, R, T: Default> Map<C, R, T> {
    /// Creates the map of these chunks.
    #[doc(hidden)]
    pub fn new(chunks: C) -> Self {
        Self { chunks, turn: T::default(), types: PhantomData }
    }
}

brigade_sys::setters! {
    impl<C: Chunks, R, T> Map<C, R, T>;

    /// Sets the maximum number of inputs that are taken ahead of the yielded results. Values below
    /// 1 count as 1.
    ///
    /// The default is 128 inputs for each worker of a pool. While workers gain from more, it is up
    /// to 1,024 for each and twice the results that were yielded, of at most 16 MiB encoded. On a
    /// cluster it is 262,144 inputs, or fewer if they take 64 MiB encoded.
    pub fn window(self, items: usize) { self.chunks.set(Setting::Window(items.max(1))) }

    /// Sets the number of items that are sent at a time, however slowly the inputs come. Values
    /// below 1 count as 1.
    ///
    /// By default, a chunk is a few milliseconds of work, and inputs that come slowly are sent at
    /// once. A worker of a pool that turns out to be slow returns the items that it has not
    /// started. In a batch a chunk has 16 items by default, and later runs use the size of the
    /// first.
    pub fn chunk(self, items: usize) { self.chunks.set(Setting::Chunk(items.max(1))) }

    /// Sets the hard deadline of each item, from the moment when it begins to run.
    ///
    /// In a pool, the items of a chunk share their time if its size is [fixed](Self::chunk).
    pub fn deadline(self, limit: Duration) { self.chunks.set(Setting::Deadline(limit)) }

    /// Sets the number of additional attempts for each item whose worker dies or whose deadline
    /// passes.
    pub fn retries(self, retries: u32) { self.chunks.set(Setting::Retry(Retry::of(retries))) }

    /// Sets the number of attempts for each item whose worker dies or whose deadline passes, and
    /// the pauses between them.
    ///
    /// During its pause, an item counts in the [`window`](Self::window), and the others go on.
    ///
    /// ```
    /// use brigade::Retry;
    /// use std::time::Duration;
    ///
    /// fn fetch(page: u32) -> Result<u32, String> {
    ///     match brigade::worker::attempt() {
    ///         Some(attempt) if attempt.get() == 1 && page % 2 == 1 => Err("busy".to_owned()),
    ///         _ => Ok(page),
    ///     }
    /// }
    ///
    /// brigade::init();
    /// let pool = brigade::Pool::builder().workers(1).build()?;
    /// let retry = Retry::new().attempts(3).delay(Duration::from_millis(10));
    /// let pages = pool.map(fetch, 0..4).retry(retry).retry_errors();
    /// let pages: Result<Vec<_>, _> = pages.collect();
    /// assert_eq!(pages?, [Ok(0), Ok(1), Ok(2), Ok(3)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retry(self, retry: Retry) { self.chunks.set(Setting::Retry(retry)) }

    /// Runs an item again after a panic too, as often as [`retry`](Self::retry) or
    /// [`retries`](Self::retries) allows. Items that travel together run again once the last of
    /// them has ended.
    pub fn retry_panics(self) { self.chunks.set(Setting::RetryPanics) }

    /// Does the same as `retry_errors` for results that are not decoded and are known to be those
    /// of a `Result`.
    #[doc(hidden)]
    pub fn __retry_encoded_errors(self) { self.chunks.set(Setting::RetryErrors) }

    /// Lets the chunks of a pool run one after the other, except those that run again.
    #[doc(hidden)]
    pub fn __one_at_a_time(self) { self.chunks.set(Setting::OneAtATime) }

    /// Adds an amount of a resource that is taken while items run. Those of a chunk, which run one
    /// after the other in one worker, share it.
    ///
    /// If there is no such resource, or not as much of it in all, each result is an error.
    pub fn needs(self, resource: impl Into<String>, amount: u64) {
        self.chunks.set(Setting::Needs(resource.into(), amount));
    }
}

impl<C: Chunks, R, T> Map<C, R, T> {
    /// Yields each result with the position of its input, counted from 0.
    pub fn indexed(self) -> Indexed<Self> {
        Indexed::new(self)
    }

    /// Yields each result with its input, which the host keeps until then.
    pub fn with_inputs(mut self) -> WithInputs<Self> {
        self.chunks.keep_inputs();
        WithInputs::new(self)
    }

    /// Limits the time for all results, from now on.
    ///
    /// After it, the iterator takes no more inputs. It yields the results that have arrived, and
    /// then a [`TimedOut`] as its last item. Dropping it cancels the items that have not started;
    /// those that run are not ended, but their results are dropped. To end an item that takes too
    /// long, set a [`deadline`](Self::deadline).
    ///
    /// With a limit, a map does not wait for room in the queue of a pool: it may exceed the limit
    /// of the queue by three chunks of inputs for each worker. On a cluster, inputs for which
    /// there is no room in time are errors. A stream has the timers of its runtime instead.
    pub fn timeout(self, timeout: Duration) -> Timeout<Self>
    where
        Self: NextUntil,
    {
        Timeout::new(self, timeout)
    }
}

impl<C: Chunks, V, E, T> Map<C, Result<V, E>, T> {
    /// Runs an item again if its function returns an `Err` too, as often as [`retry`](Self::retry)
    /// or [`retries`](Self::retries) allows. After the last attempt the `Err` is the value.
    pub fn retry_errors(self) -> Self {
        self.__retry_encoded_errors()
    }
}

brigade_sys::setters! {
    impl<C: Seeded, R, T> Map<C, R, T>;

    /// Sets a number of which `worker::seed()` is made in the map's tasks, together with the
    /// position of the input. So another run of the program gets the same seeds for the same
    /// inputs, however many workers it has, and whichever of them dies.
    ///
    /// A map by a key or a name cannot have one: its results are errors.
    pub fn seed(self, seed: u64) { self.chunks.set_seed(seed) }
}

brigade_sys::setters! {
    impl<C: Queued, R, T> Map<C, R, T>;

    /// Sets the priority of the items.
    pub fn priority(self, priority: C::Priority) { self.chunks.set_priority(priority) }

    /// Sets the requirements of the items on the node that runs them.
    pub fn requires(self, requirements: C::Requirements) {
        self.chunks.set_requirements(requirements);
    }
}

impl<C: Chunks, R: DeserializeOwned + 'static, T: Turn<C::Results>> Iterator for Map<C, R, T> {
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // Without a deadline there is no timeout.
        self.chunks.next_until(&mut self.turn, None).ok().flatten()
    }
}

impl<C: Chunks, R: DeserializeOwned + 'static, T: Turn<C::Results>> NextUntil for Map<C, R, T> {
    fn next_until(&mut self, deadline: Option<Instant>) -> Result<Option<Self::Item>, TimedOut> {
        self.chunks.next_until(&mut self.turn, deadline)
    }
}

brigade_sys::debug_fields!(impl<C: Chunks, R, T> Map<C, R, T> { chunks });

#[cfg(feature = "futures")]
mod futures {
    use std::task::{Context, Poll};

    use serde::de::DeserializeOwned;

    use super::{Chunks, Map, Turn};
    use crate::{AsStream, PollNext, TaskError};

    /// Chunks that a future can await.
    #[doc(hidden)]
    pub trait PollChunks: Chunks {
        /// Returns the next result as [`next`](Chunks::next) does, for a future.
        fn poll_next<R: DeserializeOwned + 'static, T: Turn<Self::Results>>(
            &mut self,
            context: &Context<'_>,
            turn: &mut T,
        ) -> Poll<Option<Result<R, TaskError>>>;
    }

    impl<C: PollChunks, R: DeserializeOwned + 'static, T: Turn<C::Results>> Map<C, R, T> {
        /// Returns the results as a `futures_core::Stream`, for any runtime.
        ///
        /// Polling takes inputs from the iterator, which should not block. It does not wait for
        /// room in the pool's queue: it may exceed the limit by three chunks of inputs for each
        /// worker.
        pub fn into_stream(self) -> AsStream<Self> {
            AsStream::new(self)
        }
    }

    impl<C: PollChunks, R: DeserializeOwned + 'static, T: Turn<C::Results>> PollNext for Map<C, R, T> {
        fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.chunks.poll_next(context, &mut self.turn)
        }
    }
}

#[cfg(feature = "futures")]
pub use futures::PollChunks;
