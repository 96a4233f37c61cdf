//! The `tracing` span in which a worker runs a task, for a subscriber that the worker installs.

use brigade_wire::{Attempt, TaskId};
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Level, debug_span};

use crate::context;

/// Returns `true` if any subscriber may want the spans of tasks. To enter one that nobody wants
/// costs several times as much as this.
#[inline]
pub(crate) fn are_wanted() -> bool {
    LevelFilter::current() >= Level::DEBUG
}

/// Enters the span of a task, or of an item of a chunk.
#[cold]
pub(crate) fn enter(task: TaskId, attempt: Attempt) -> EnteredSpan {
    debug_span!(
        target: "brigade::task", "task", otel.kind = "server", task = task.get(),
        attempt = attempt.get(), worker = context::id().map(tracing::field::display),
    )
    .entered()
}
