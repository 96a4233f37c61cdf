//! An input of a stream on its way to its item.

use std::time::Instant;

use brigade_wire::Attempt;
use brigade_wire::codec::CodecError;
use brigade_worker::EmitEnd;
use serde::de::DeserializeOwned;

use super::item::Item;
use super::machine::TaskEnd;
use crate::cell::TaskCell;
use crate::drive::Shared;
use crate::emitted::{Emitted, Taken};
use crate::error::{SubmitErrorKind, TaskError, TaskErrorKind};
use crate::payload::undecodable;
use crate::run_record::{Run, RunRecord};
use brigade_task::backend::{Value as _, Wait};

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
    pub(super) cell: TaskCell,
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

    /// Cancels it if it has not started, and drops the items that it emits.
    pub(super) fn cancel(&self, shared: &Shared) {
        let Some(cell) = self.cell() else { return };
        if let Some(emitted) = cell.emitted() {
            emitted.discard();
        }
        if cell.is_pending() {
            shared.cancel(cell);
        }
    }

    pub(super) fn cell(&self) -> Option<&TaskCell> {
        self.as_pool().map(|task| &task.cell)
    }
}

impl<R: DeserializeOwned + 'static> Task<R> {
    /// Returns the item of a task that is finished.
    pub(super) fn into_item(self, id: u64) -> Option<Item<R>> {
        match self {
            Self::Pool(task) => task.into_item(id),
            Self::Ran(item) => Some(*item),
            Self::Running => None,
        }
    }
}

impl PoolTask {
    /// Returns the item with the outcome; `None` for an input that has emitted all its items.
    fn into_item<R: DeserializeOwned + 'static>(self, id: u64) -> Option<Item<R>> {
        let run = self.cell.record().map(RunRecord::get).unwrap_or_default();
        let result = match self.cell.try_take() {
            // A task is finished once it has an outcome, and taken once.
            None => Err(self.failure(&run, TaskErrorKind::Cancelled)),
            Some(Err(error)) => Err(error),
            Some(Ok(value)) if self.cell.emitted().is_none() => self.decoded(&run, value.decode()),
            Some(Ok(value)) => match self.decoded(&run, value.decode()) {
                Ok(EmitEnd::Complete) => return None,
                Ok(EmitEnd::Closed) => Err(self.failure(&run, TaskErrorKind::PoolClosed)),
                Ok(EmitEnd::Expired) => {
                    let deadlines = self.cell.deadlines();
                    let limit = deadlines.and_then(|it| it.limits.soft).unwrap_or_default();
                    let elapsed = run.time.unwrap_or(limit).max(limit);
                    Err(self.failure(&run, TaskErrorKind::DeadlineExceeded { limit, elapsed }))
                }
                Err(error) => Err(error),
            },
        };
        let index = self.cell.emitted().map_or(0, Emitted::taken);
        Some(self.item(id, index, &run, result))
    }

    /// Returns an item that the input has emitted.
    pub(super) fn emitted_item<R: DeserializeOwned + 'static>(
        &self,
        id: u64,
        taken: &Taken,
    ) -> Item<R> {
        let result = self.decoded(&taken.run, taken.value.decode_again());
        self.item(id, taken.index, &taken.run, result)
    }

    fn item<R>(&self, id: u64, index: u64, run: &Run, result: Result<R, TaskError>) -> Item<R> {
        let queued = self.queued;
        let (started, finished) = run.times();
        let finished = finished.max(queued);
        // The worker's clock may have measured more than has passed here.
        let started = started.map(|started| started.clamp(queued, finished));
        let (worker, attempt) = (run.worker, run.attempt.unwrap_or(Attempt::first()).get());
        Item { id, index, queued, started, finished, worker, attempt, result }
    }

    fn decoded<T>(&self, run: &Run, decoded: Result<T, CodecError>) -> Result<T, TaskError> {
        decoded.map_err(|error| {
            self.failure(run, TaskErrorKind::Codec { message: undecodable(&error) })
        })
    }

    fn failure(&self, run: &Run, kind: TaskErrorKind) -> TaskError {
        let attempt = run.attempt.unwrap_or(Attempt::first());
        TaskError::new(kind).of_task(self.cell.id, attempt, self.cell.label().cloned())
    }
}

impl<R> Item<R> {
    pub(super) fn ended(&self) -> TaskEnd {
        match &self.result {
            Ok(_) => TaskEnd::Value,
            Err(error) if error.is_worker_death() => TaskEnd::Lost,
            Err(_) => TaskEnd::Failure,
        }
    }
}
