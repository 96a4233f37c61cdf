//! `map` and `map_unordered`: a function over an iterator, a bounded number of tasks at a time.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::task::Wake;

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::TaskError;
use crate::{Handle, Pool, TaskBuilder};

/// Tasks under way for each worker, unless `window` says otherwise: enough that no worker waits for the caller.
const TASKS_PER_WORKER: usize = 128;

/// Results in the order of the inputs; made by [`Pool::map`].
///
/// Inputs are taken as results are taken: at most `window` tasks are under way. Dropping it cancels
/// what has not begun.
#[must_use = "an iterator does nothing until it is used"]
pub struct Map<'pool, F, I: Iterator, R> {
    source: Source<'pool, F, I, R>,
    under_way: VecDeque<Result<Handle<R>, TaskError>>,
}

/// Results in the order of completion; made by [`Pool::map_unordered`].
///
/// As [`Map`], but a slow task holds nothing up.
#[must_use = "an iterator does nothing until it is used"]
pub struct MapUnordered<'pool, F, I: Iterator, R> {
    source: Source<'pool, F, I, R>,
    under_way: HashMap<u64, Handle<R>>,
    failed: VecDeque<TaskError>,
    finished: (Sender<u64>, Receiver<u64>),
    count: u64,
}

/// What both have in common: where tasks come from and how many may be under way.
struct Source<'pool, F, I: Iterator, R> {
    task: TaskBuilder<'pool, F, I::Item, R>,
    inputs: I,
    exhausted: bool,
    window: usize,
}

impl<'pool, F, I, R> Source<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        let window = pool.workers() * TASKS_PER_WORKER;
        Self { task: pool.task(function), inputs, exhausted: false, window }
    }

    /// The next task, submitted; `None` when there is no more input.
    fn next(&mut self) -> Option<Result<Handle<R>, TaskError>> {
        if self.exhausted {
            return None;
        }
        let Some(input) = self.inputs.next() else {
            self.exhausted = true;
            return None;
        };
        Some(self.task.submit(input).map_err(crate::SubmitError::into_task_error))
    }
}

impl<'pool, F, I, R> Map<'pool, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    pub(crate) fn new(pool: &'pool Pool, function: F, inputs: I) -> Self {
        Self { source: Source::new(pool, function, inputs), under_way: VecDeque::new() }
    }

    /// The most inputs that are taken ahead of the result that is awaited; at least 1.
    pub fn window(mut self, tasks: usize) -> Self {
        self.source.window = tasks.max(1);
        self
    }

    /// As [`TaskBuilder::retries`], for each task.
    pub fn retries(mut self, retries: u32) -> Self {
        self.source.task.set_retries(retries);
        self
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

    fn next(&mut self) -> Option<Self::Item> {
        while self.under_way.len() < self.source.window {
            match self.source.next() {
                Some(task) => self.under_way.push_back(task),
                None => break,
            }
        }
        Some(self.under_way.pop_front()?.and_then(Handle::wait))
    }
}

impl<F, I: Iterator, R> Drop for Map<'_, F, I, R> {
    fn drop(&mut self) {
        for handle in self.under_way.iter().flatten() {
            handle.cancel();
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
        Self {
            source: Source::new(pool, function, inputs),
            under_way: HashMap::new(),
            failed: VecDeque::new(),
            finished: unbounded(),
            count: 0,
        }
    }

    /// The most tasks that are under way at a time; at least 1.
    pub fn window(mut self, tasks: usize) -> Self {
        self.source.window = tasks.max(1);
        self
    }

    /// As [`TaskBuilder::retries`], for each task.
    pub fn retries(mut self, retries: u32) -> Self {
        self.source.task.set_retries(retries);
        self
    }

    /// Keeps a task until it has ended; one that has ended already is announced at once.
    fn watch(&mut self, handle: Handle<R>) {
        let number = self.count;
        self.count += 1;
        let announcement = Announcement { number, to: self.finished.0.clone() };
        handle.notify(&Arc::new(announcement).into());
        if handle.is_done() {
            // It ended before the announcement was in place, or right after; a second one finds nothing.
            let _ = self.finished.0.send(number);
        }
        self.under_way.insert(number, handle);
    }
}

/// Says that a task has ended, by its number.
struct Announcement {
    number: u64,
    to: Sender<u64>,
}

impl Wake for Announcement {
    fn wake(self: Arc<Self>) {
        // The iterator may be gone; then nobody wants to know.
        let _ = self.to.send(self.number);
    }
}

impl<F, I, R> Iterator for MapUnordered<'_, F, I, R>
where
    I: Iterator,
    F: Fn(I::Item) -> R + Copy + Send + 'static,
    I::Item: Serialize + DeserializeOwned + 'static,
    R: Serialize + DeserializeOwned + 'static,
{
    type Item = Result<R, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.under_way.len() + self.failed.len() < self.source.window {
            match self.source.next() {
                Some(Ok(handle)) => self.watch(handle),
                Some(Err(error)) => self.failed.push_back(error),
                None => break,
            }
        }
        if let Some(error) = self.failed.pop_front() {
            return Some(Err(error));
        }
        while !self.under_way.is_empty() {
            let number = self.finished.1.recv().expect("the iterator holds a sender itself");
            if let Some(handle) = self.under_way.remove(&number) {
                return Some(handle.wait());
            }
        }
        None
    }
}

impl<F, I: Iterator, R> Drop for MapUnordered<'_, F, I, R> {
    fn drop(&mut self) {
        for handle in self.under_way.values() {
            handle.cancel();
        }
    }
}

impl<F, I: Iterator, R> fmt::Debug for Map<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Map").field("under_way", &self.under_way.len()).finish_non_exhaustive()
    }
}

impl<F, I: Iterator, R> fmt::Debug for MapUnordered<'_, F, I, R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MapUnordered")
            .field("under_way", &self.under_way.len())
            .finish_non_exhaustive()
    }
}
