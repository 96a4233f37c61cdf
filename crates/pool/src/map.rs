//! `map` and `map_unordered`: a function over an iterator, several items to a frame, a bounded number under way.
//!
//! Inputs become *pieces*: as many items as make about half a millisecond of work, in one frame. A piece ends
//! when its items are answered, or earlier: when it took too long the worker gives the rest back, and when the
//! worker died only the item that ran has failed. The rest then becomes another piece. So items are handed out in bulk
//! and fail, are retried and wait for each other as if each had been submitted by itself.

mod piece;
mod pieces;
mod sizing;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Pool;
use crate::error::TaskError;
use piece::Results;
use pieces::Pieces;

/// Results in the order of the inputs; made by [`Pool::map`].
///
/// Inputs are taken as results are taken. Dropping it cancels what has not begun.
#[must_use = "an iterator does nothing until it is used"]
pub struct Map<'pool, F, I: Iterator, R> {
    pieces: Pieces<'pool, F, I, R>,
    /// The results that are next.
    current: Option<Results>,
    /// The place of the first item behind them.
    next: u64,
    /// Results of later items, by the place of their first one.
    early: BTreeMap<u64, Results>,
}

/// Results in the order of completion; made by [`Pool::map_unordered`].
///
/// As [`Map`], but a slow task holds nothing up.
#[must_use = "an iterator does nothing until it is used"]
pub struct MapUnordered<'pool, F, I: Iterator, R> {
    pieces: Pieces<'pool, F, I, R>,
    current: Option<Results>,
}

macro_rules! settings {
    () => {
        /// The most inputs that are taken ahead of the results that were yielded; at least 1. Without this setting the
        /// number is 128 for each worker, or what takes 16 MiB encoded if that is more.
        pub fn window(mut self, items: usize) -> Self {
            self.pieces.set_window(items);
            self
        }

        /// So many items go to a worker at a time; at least 1. Without this setting it is as many as make about half a
        /// millisecond of work, and a worker that turns out to be slow gives back what it has not begun.
        pub fn chunk(mut self, items: usize) -> Self {
            self.pieces.set_chunk(items);
            self
        }

        /// How long each item may run; see [`Builder::deadline`](crate::Builder::deadline). With a fixed
        /// [`chunk`](Self::chunk) its items share their time.
        pub fn deadline(mut self, limit: std::time::Duration) -> Self {
            self.pieces.set_deadline(limit);
            self
        }

        /// As [`TaskBuilder::retries`](crate::TaskBuilder::retries), for each item.
        pub fn retries(mut self, retries: u32) -> Self {
            self.pieces.set_retries(retries);
            self
        }
    };
}

impl<'pool, F, I, R> Map<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        let pieces = Pieces::new(pool, function, inputs);
        Self { pieces, current: None, next: 0, early: BTreeMap::new() }
    }

    settings!();

    /// Makes the results at `next` the current ones, if they are there.
    fn turn(&mut self) -> bool {
        while let Some(results) = self.pieces.settled() {
            self.early.insert(results.place(), results);
        }
        self.current = self.early.remove(&self.next);
        if let Some(results) = &self.current {
            self.next += results.len();
        }
        self.current.is_some()
    }
}

impl<F, I, R> Iterator for Map<'_, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.pieces.is_forked() {
            return self.pieces.forked().map(Err);
        }
        loop {
            self.pieces.keep_going();
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.pieces.yielded();
                return Some(result);
            }
            if let Some(done) = self.current.take() {
                self.pieces.is_done_with(&done);
            }
            self.pieces.refill();
            if !self.turn() && !self.pieces.wait() {
                return None;
            }
        }
    }
}

impl<'pool, F, I, R> MapUnordered<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        Self { pieces: Pieces::new(pool, function, inputs), current: None }
    }

    settings!();
}

impl<F, I, R> Iterator for MapUnordered<'_, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.pieces.is_forked() {
            return self.pieces.forked().map(Err);
        }
        loop {
            self.pieces.keep_going();
            if let Some(result) = self.current.as_mut().and_then(Results::next) {
                self.pieces.yielded();
                return Some(result);
            }
            if let Some(done) = self.current.take() {
                self.pieces.is_done_with(&done);
            }
            self.pieces.refill();
            self.current = self.pieces.settled();
            if self.current.is_none() && !self.pieces.wait() {
                return None;
            }
        }
    }
}

impl<F, I: Iterator, R> fmt::Debug for Map<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Map").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}

impl<F, I: Iterator, R> fmt::Debug for MapUnordered<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MapUnordered").field("pieces", &self.pieces).finish_non_exhaustive()
    }
}
