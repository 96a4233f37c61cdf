//! The `tracing` span of a task, from its submission to its outcome.
//!
//! The thread that submits the task opens the span, so that its own current span is the parent. The
//! output thread closes it: closing calls the subscriber, and the thread that handles the outcome
//! may be one that others depend on.

use std::fmt;
use std::sync::Arc;

use brigade_wire::{Attempt, TRACE_CONTEXT_LIMIT, TaskId, WorkerId};
use tracing::field::{Empty, display};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Span, debug_span};

use crate::error::{SubmitErrorKind, TaskError};
use crate::payload::Outcome;

/// Returns the trace context of the calling thread, which workers get with the task.
pub(crate) type ContextHook = dyn Fn() -> Option<String> + Send + Sync;

/// The user's [`ContextHook`].
#[derive(Clone)]
pub(crate) struct TraceContext(pub(crate) Arc<ContextHook>);

brigade_sys::debug_fields! {
    impl TraceContext {}
}

/// The span of a task in the host, and its context for the worker's tracing system.
#[derive(Debug)]
pub(crate) struct TaskSpan {
    span: Span,
    /// Sent with each attempt.
    context: Option<Arc<str>>,
    /// The last attempt, and the worker that it was sent to.
    sent: Option<(WorkerId, Attempt)>,
    /// `None` until the outcome is known.
    end: Option<End>,
}

#[derive(Debug)]
enum End {
    Succeeded,
    ItemsFailed(usize),
    Failed(TaskError),
}

impl TaskSpan {
    /// Returns `true` if somebody may be interested in spans of tasks.
    #[inline]
    pub(crate) fn is_wanted(context: Option<&TraceContext>) -> bool {
        context.is_some() || LevelFilter::current() >= Level::DEBUG
    }

    /// Opens the span of a task. Returns `None` if nobody is interested. `items` is the number of
    /// items of a chunk.
    pub(crate) fn open(
        pool: &str,
        context: Option<&TraceContext>,
        task: TaskId,
        label: Option<&str>,
        items: Option<u32>,
    ) -> Option<Box<Self>> {
        let span = debug_span!(
            target: "brigade::task", "task", otel.kind = "client", pool, task = task.get(), label,
            items, worker = Empty, attempt = Empty, outcome = Empty, otel.status_code = Empty,
            otel.status_description = Empty,
        );
        let context = context.and_then(|hook| span.in_scope(|| (hook.0)()));
        let context = context.filter(|text| !text.is_empty() && text.len() <= TRACE_CONTEXT_LIMIT);
        if span.is_disabled() && context.is_none() {
            return None;
        }
        Some(Box::new(Self { span, context: context.map(Arc::from), sent: None, end: None }))
    }

    /// Returns the same for items that were split off from a chunk. They have no span of their own,
    /// because opening one calls the subscriber.
    pub(crate) fn split_off(&self) -> Option<Box<Self>> {
        let context = Some(Arc::clone(self.context.as_ref()?));
        Some(Box::new(Self { span: Span::none(), context, sent: None, end: None }))
    }

    /// Records an attempt, and returns the context that the worker gets with it.
    pub(crate) fn send(&mut self, worker: WorkerId, attempt: Attempt) -> Option<Arc<str>> {
        self.sent = Some((worker, attempt));
        self.context.clone()
    }

    /// Records the outcome. `failed` is the number of failed items of a chunk, whose own outcome is
    /// an empty value.
    pub(crate) fn end(&mut self, outcome: &Outcome, failed: usize) {
        if self.is_open() {
            self.end = Some(match outcome {
                Err(error) => End::Failed(error.clone()),
                Ok(_) if failed > 0 => End::ItemsFailed(failed),
                Ok(_) => End::Succeeded,
            });
        }
    }

    /// Returns `true` if there is a span to close.
    pub(crate) fn is_open(&self) -> bool {
        !self.span.is_disabled()
    }

    /// Closes the span, which calls the subscriber.
    pub(crate) fn close(self) {
        let Self { span, sent, end, .. } = self;
        if let Some((worker, attempt)) = sent {
            span.record("worker", display(worker));
            span.record("attempt", attempt.get());
        }
        match end {
            Some(End::Succeeded) => {
                span.record("outcome", "succeeded");
                span.record("otel.status_code", "OK");
            }
            Some(End::ItemsFailed(count)) => {
                fail(&span, "items_failed", &format_args!("{count} items failed"));
            }
            Some(End::Failed(error)) if error.is_queue_deadline() => {
                fail(&span, "queue_deadline", &error);
            }
            Some(End::Failed(error)) => fail(&span, error.kind().name(), &error),
            None => {}
        }
    }

    /// Closes the span of a task that was not accepted.
    pub(crate) fn refuse(self, kind: &SubmitErrorKind) {
        fail(&self.span, "refused", kind);
    }
}

fn fail(span: &Span, outcome: &str, reason: &dyn fmt::Display) {
    span.record("outcome", outcome);
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", display(reason));
}
