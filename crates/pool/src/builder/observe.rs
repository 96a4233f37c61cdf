//! Settings with which other programs observe the tasks of a pool.

#[cfg(feature = "trace-export")]
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::Level;

use super::PoolBuilder;
use crate::task_span::TraceContext;

brigade_sys::setters! {
    impl PoolBuilder;

    /// Reports each task that has no outcome after this time, and again each time that it has
    /// become older by it. Default: not reported.
    ///
    /// A report is a `tracing` event at the level WARN with `task`, `label`, `attempt`, the time
    /// `elapsed` since the submission, and a `phase`:
    /// - `queued`: the task waits, with `worker` and `pid` if it was sent behind others;
    /// - `starting`: the task waits, and workers are being started but none is ready;
    /// - `running`: the worker `worker` with this `pid` began it, the time `running` ago.
    ///
    /// A chunk of a map is one task. A report comes late by an eighth of the time at most. At most
    /// 100 tasks are reported at once, those that were sent to workers first; one more event has
    /// the number of the others.
    pub fn slow_task_after(self, time: Duration) { self.config.scheduler.slow_after = Some(time) }

    /// Interrupts tasks that compute by a signal, SIGURG, when somebody asks for their stacks:
    /// [`Handle::stack`](crate::Handle::stack), the status page and `brigade top`. Default:
    /// `false`, and only tasks that wait show theirs.
    ///
    /// Only a task that has run on from one look to the next gets the signal. A system call that
    /// begins in the microseconds between the second look and the signal is interrupted by it: one
    /// with a timeout, such as `poll` or `usleep`, then fails with `EINTR`. The standard library
    /// goes on. A task that has blocked SIGURG or replaced its handler shows no stack.
    pub fn interrupt_for_stacks(self, interrupts: bool) { self.config.interrupts = interrupts }

    /// Forwards the `tracing` events that tasks and initializers emit, up to this level, to the
    /// subscriber of this process. Default: not forwarded.
    ///
    /// For that, `init` installs a subscriber in the workers, unless the program has installed one
    /// before; a task or an initializer must not install another. The pool's output thread emits
    /// the events with their level, target and fields, and with `pool`, `worker`, `pid`, `task` and
    /// `attempt`. They come independently of outcomes, except at a worker's death: everything that
    /// the worker emitted comes before the outcome of its task, unless the subscriber takes longer
    /// than a second. Events that the subscriber is too slow for are lost, and their number is an
    /// event. For all limits see
    /// [tracing](https://github.com/brigade-rs/brigade/blob/main/docs/tracing.md).
    pub fn forward_events(self, level: Level) { self.config.supervisor.events = Some(level) }

    /// Writes a timeline of this pool to a file, in Chrome's trace format, which
    /// [Perfetto](https://ui.perfetto.dev) opens: a row for each slot, with starts, initializers,
    /// tasks and deaths, and the length of the queue.
    ///
    /// A thread of its own writes the file while the pool runs, a tenth of a second behind at most,
    /// so the file of a killed program opens too. A shutdown waits for the rest, but no longer than
    /// for user code: for its timeout or the [`stop_grace`](Self::stop_grace), whichever is longer.
    /// If the disk is slower than the pool, entries are lost, and counted in the timeline. A file
    /// that exists is replaced.
    #[cfg(feature = "trace-export")]
    pub fn trace(self, path: impl AsRef<Path>) {
        self.config.trace = Some(path.as_ref().to_owned());
    }

    /// Sets a hook that returns the trace context of the calling thread: a short text, such as a
    /// W3C `traceparent`, with which a tracing system links the spans of two processes.
    ///
    /// It is called for each submission, inside the task's span, and the task gets the text from
    /// `worker::trace_context()`. A text of more than 1 KiB is not sent. The hook must not submit
    /// tasks to this pool. For the spans themselves, and an example, see
    /// [tracing](https://github.com/brigade-rs/brigade/blob/main/docs/tracing.md).
    pub fn trace_context(self, hook: impl Fn() -> Option<String> + Send + Sync + 'static) {
        self.config.trace_context = Some(TraceContext(Arc::new(hook)));
    }
}
