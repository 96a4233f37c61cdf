//! Implements `map` and `map_unordered`, which apply a function to the items of an iterator.
//!
//! Inputs are sent in *chunks* of as many items as make about 3 ms of work, in one frame
//! each. The number of chunks in flight is bounded. A chunk ends when its items are finished, or
//! earlier: a worker returns the remaining items of a chunk that took too long, and if a worker
//! dies, only the item that ran has failed. The scheduler then divides the chunk, and the map
//! learns of the new chunks when it takes the results. So items are sent in bulk, but fail, are
//! retried and wait for each other as if each had been submitted by itself.

mod chunk;
mod chunks;
mod sizing;

use brigade_task::map;
use brigade_task::{Data, Function};

use crate::Pool;
pub(crate) use chunks::Chunks;

/// An iterator over the results in the order of the inputs, created by [`Pool::map`]; see
/// [`brigade_task::Map`].
#[cfg_attr(
    feature = "futures",
    doc = "
It is a stream as well:

```no_run
# fn square(x: u64) -> u64 { x * x }
# async fn all(pool: brigade::Pool) {
use futures::StreamExt;

let squares: Vec<_> = pool.map(square, 1..10).into_stream().collect().await;
# }
```"
)]
pub type Map<'pool, I, R> = map::Map<Chunks<'pool, I>, R>;

/// An iterator over the results in order of completion, created by [`Pool::map_unordered`]; see
/// [`brigade_task::MapUnordered`].
pub type MapUnordered<'pool, I, R> = map::MapUnordered<Chunks<'pool, I>, R>;

impl Pool {
    /// Applies `function` to each input and yields the results in the order of the inputs.
    ///
    /// The iterator is lazy and bounded: it takes inputs as results are consumed. A task that fails
    /// yields an error item, and the iteration continues.
    pub fn map<F: Function<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> Map<'_, I::IntoIter, R> {
        const { F::CHECK };
        Map::new(Chunks::new(self, &function.target(), inputs.into_iter()))
    }

    /// Applies `function` to each input like [`map`](Self::map), but yields the results in the
    /// order of completion.
    pub fn map_unordered<F: Function<I::Item, R, By>, I: IntoIterator<Item: Data>, R: Data, By>(
        &self,
        function: F,
        inputs: I,
    ) -> MapUnordered<'_, I::IntoIter, R> {
        const { F::CHECK };
        MapUnordered::new(Chunks::new(self, &function.target(), inputs.into_iter()))
    }
}
