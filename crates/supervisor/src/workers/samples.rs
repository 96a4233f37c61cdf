//! The samples that were asked of one worker.

use brigade_sys::sync::{Condvar, Mutex};

/// The samples of one worker.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    pub(crate) requests: Mutex<Requests>,
    /// Notified when a sample has arrived.
    pub(crate) arrived: Condvar,
}

/// Requests, which are counted here because a worker can write to the shared memory.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Number of requests whose notice has not arrived. A worker may answer several at once.
    pub(crate) open: u64,
    /// The request before a kill.
    pub(crate) last: Option<u64>,
}
