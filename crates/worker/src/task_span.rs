//! The `tracing` span in which a worker runs a task, for a subscriber that the worker installs.

use brigade_wire::{Attempt, TaskId};
use tracing::debug_span;
use tracing::span::EnteredSpan;

use crate::context;

/// Enters the span of a task, or of an item of a chunk.
#[inline]
pub(crate) fn enter(task: TaskId, attempt: Attempt) -> EnteredSpan {
    debug_span!(
        target: "brigade::task", "task", otel.kind = "server", task = task.get(),
        attempt = attempt.get(), worker = context::id().map(tracing::field::display),
    )
    .entered()
}
