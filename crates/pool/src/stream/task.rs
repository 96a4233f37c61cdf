//! An input of a stream on its way to its item.

use std::sync::Arc;
use std::time::Instant;

use brigade_wire::{Attempt, codec};
use serde::de::DeserializeOwned;

use super::item::Item;
use super::machine::Ended;
use crate::cell::TaskCell;
use crate::error::{SubmitErrorKind, TaskError, TaskErrorKind};

/// An input, and later its result.
#[derive(Debug)]
pub(super) enum Task<R> {
    /// A task of the pool.
    Pool(PoolTask),
    /// A function that runs in this process.
    Running,
    /// A function that has run in this process.
    Ran(Box<Item<R>>),
}

/// A task of the pool.
#[derive(Debug, Clone)]
pub(super) struct PoolTask {
    pub(super) cell: Arc<TaskCell>,
    pub(super) queued: Instant,
    /// The reason why it cannot be submitted.
    pub(super) refused: Option<SubmitErrorKind>,
}

impl<R> Task<R> {
    /// Returns the task of the pool, if it is one.
    pub(super) fn as_pool(&self) -> Option<&PoolTask> {
        match self {
            Self::Pool(task) => Some(task),
            Self::Running | Self::Ran(_) => None,
        }
    }

    pub(super) fn cell(&self) -> Option<&Arc<TaskCell>> {
        self.as_pool().map(|task| &task.cell)
    }
}

impl<R: DeserializeOwned + 'static> Task<R> {
    /// Returns the item of a task that is finished.
    pub(super) fn into_item(self, id: u64) -> Option<Item<R>> {
        match self {
            Self::Pool(task) => Some(task.into_item(id)),
            Self::Ran(item) => Some(*item),
            Self::Running => None,
        }
    }
}

impl PoolTask {
    fn into_item<R: DeserializeOwned + 'static>(self, id: u64) -> Item<R> {
        let Self { cell, queued, .. } = self;
        let run = cell.record.as_ref().map(|record| record.get()).unwrap_or_default();
        let attempt = run.attempt.unwrap_or(Attempt::first());
        let failure = |kind| TaskError::new(kind).of_task(cell.id, attempt, cell.label());
        let result = match cell.try_take() {
            Some(outcome) => outcome.and_then(|value| {
                value.decode().map_err(|error| {
                    let error = codec::chain(&error);
                    let message = format!("the result arrived but could not be decoded: {error}");
                    failure(TaskErrorKind::Codec { message })
                })
            }),
            // A task is finished once it has an outcome, and taken once.
            None => Err(failure(TaskErrorKind::Cancelled)),
        };
        let (started, finished) = run.times();
        let finished = finished.max(queued);
        // The worker's clock may have measured more than has passed here.
        let started = started.map(|started| started.clamp(queued, finished));
        let (worker, attempt) = (run.worker, attempt.get());
        Item { id, queued, started, finished, worker, attempt, result }
    }
}

impl<R> Item<R> {
    pub(super) fn ended(&self) -> Ended {
        match &self.result {
            Ok(_) => Ended::Value,
            Err(error) if error.is_worker_death() => Ended::Lost,
            Err(_) => Ended::Failure,
        }
    }
}
