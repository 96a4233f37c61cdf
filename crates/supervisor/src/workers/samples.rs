//! The samples that were asked of one worker.

use brigade_sys::sync::{Condvar, Mutex};

/// The samples of one worker.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The request before a kill.
    pub(crate) last: Mutex<Option<u64>>,
    /// Notified when a sample has arrived.
    pub(crate) arrived: Condvar,
}
