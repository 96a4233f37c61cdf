//! The start of a worker that is a thread of its host.

use brigade_sys::sealed::SealedView;
use crossbeam_channel::Sender;

use crate::WorkerId;
use crate::link::memory;
use crate::slots::SlotTable;

/// All that a worker needs that is a thread of its host, in place of a handshake.
#[derive(Debug)]
pub struct WorkerThread {
    /// The worker.
    pub worker: WorkerId,
    /// Its nesting depth.
    pub depth: u32,
    /// Its end of the link.
    pub end: memory::End,
    /// The states of its tasks.
    pub slots: SlotTable,
    /// Maximum size of an encoded argument or result.
    pub message_limit: usize,
    /// The offset and the argument of `preload`.
    pub preload: Option<(u64, SealedView)>,
    /// The offset and the argument of the initializer.
    pub initializer: Option<(u64, SealedView)>,
    /// The offset of the finalizer.
    pub finalizer: Option<u64>,
    /// Takes the end of `preload` and the initializer, whose error can follow "the worker could not
    /// be started: ".
    pub initialized: Sender<Result<(), String>>,
}

/// Runs a worker on the thread that calls it, and returns what would be the exit code of a process.
pub type RunWorker = fn(WorkerThread) -> i32;
