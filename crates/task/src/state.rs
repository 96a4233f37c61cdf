//! The progress of a task.

/// The progress of a task.
///
/// A task goes from `Queued` to `Running` to `Done` or `Failed`, or from `Queued` to `Cancelled`.
/// It becomes `Failed` without having run if its pool breaks or is shut down. It returns to
/// `Queued` if its worker dies before it starts, or if it is to be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// Not started, whether it was already sent to a worker or not; it can be cancelled.
    Queued,
    /// Started by a worker; the outcome has not arrived.
    Running,
    /// Finished with a value, which may be an `Err` that its function returned.
    Done,
    /// Finished with a failure other than a cancellation.
    Failed,
    /// Cancelled before it started.
    Cancelled,
}
