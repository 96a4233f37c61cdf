//! Settings with which other programs observe the tasks of a pool.

use std::sync::Arc;

use super::PoolBuilder;
use crate::task_span::TraceContext;

impl PoolBuilder {
    /// Sets a hook that returns the trace context of the calling thread: a short text, such as a
    /// W3C `traceparent`, with which a tracing system links the spans of two processes.
    ///
    /// It is called for each submission, inside the task's span, and the task gets the text from
    /// `worker::trace_context()`. A text of more than 1 KiB is not sent. The hook must not submit
    /// tasks to this pool. For the spans themselves, and an example, see
    /// [tracing](https://github.com/brigade-rs/brigade/blob/main/docs/tracing.md).
    pub fn trace_context(
        mut self,
        hook: impl Fn() -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.config.trace_context = Some(TraceContext(Arc::new(hook)));
        self
    }
}
