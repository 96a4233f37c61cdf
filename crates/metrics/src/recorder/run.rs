//! The end of a task, as the owner of a recorder reports it.

/// The end of a task, or of several items of a map at once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run<'a> {
    /// Number of the task, or of the first item.
    pub task: u64,
    /// Label of the task.
    pub label: Option<&'a str>,
    /// Number of items, and 1 for other tasks.
    pub items: u32,
    /// Number of items that failed. Each failure is reported as well; see
    /// [`Recorder::failed`](crate::Recorder::failed).
    pub failed: u32,
    /// Slot and generation of the worker that ran it; `None` if none did.
    pub worker: Option<(u32, u32)>,
    /// Time that the run took, in nanoseconds, if it is known. Items share it equally.
    pub run_time: Option<u64>,
    /// Bytes of the result.
    pub bytes: u64,
    /// Present if the task was timed.
    pub timing: Option<Timing>,
}

/// The times around a run, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Number of tasks that this one stands for, itself included. For items of a map, multiplied by
    /// their number.
    pub weight: u32,
    /// Time from submission until a worker began.
    pub queue_time: Option<u64>,
    /// Time from the end of the run until the outcome arrived.
    pub delivery_time: Option<u64>,
}

/// Returns a worker as text: its slot and its generation, if it counts generations.
pub(crate) fn worker_text((slot, generation): (u32, u32)) -> String {
    if generation == 0 { slot.to_string() } else { format!("{slot}.{generation}") }
}

impl Run<'_> {
    /// Returns the time that each item took, on average.
    #[inline]
    pub(crate) fn time_of_item(&self) -> Option<u64> {
        // Most tasks are one item, and a division takes long.
        self.run_time.map(|time| if self.items > 1 { time / u64::from(self.items) } else { time })
    }
}
