//! An item of a stream.

use std::time::Instant;

use brigade_wire::WorkerId;

use crate::error::TaskError;

/// The result of one input, with its history.
///
/// The times are in order: `queued`, `started`, `finished`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Item<R> {
    /// The id that `put` returned.
    pub id: u64,
    /// The number of earlier items that the input has emitted; 0 unless the stream is
    /// [flat](crate::Pool::stream_flat).
    pub index: u64,
    /// The time at which the input was put.
    pub queued: Instant,
    /// The time at which a worker started the last attempt, computed from the run time; `None` if
    /// none did.
    pub started: Option<Instant>,
    /// The time at which the outcome arrived in this process.
    pub finished: Instant,
    /// The worker of the last attempt; `None` if none started it, or if the stream runs in this
    /// process.
    pub worker: Option<WorkerId>,
    /// The number of the last attempt, counted from 1.
    pub attempt: u32,
    /// The value that the function returned, or the reason why there is none.
    pub result: Result<R, TaskError>,
}
