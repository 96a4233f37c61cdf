//! The start of a worker that is a thread of its host.

use brigade_sys::sealed::SealedView;
use crossbeam_channel::Sender;

use crate::handshake::Hello;
use crate::link::memory;
use crate::slots::SlotTable;

/// All that a worker gets that is a thread of its host: the greeting of any worker, and what other
/// workers make of its descriptors.
#[derive(Debug)]
pub struct WorkerThread {
    /// The greeting.
    pub hello: Hello,
    /// Its end of the link.
    pub end: memory::End,
    /// The states of its tasks.
    pub slots: SlotTable,
    /// The arguments of `preload` and of the initializer.
    pub arguments: [Option<SealedView>; 2],
    /// The place for the end of its start.
    pub initialized: Initialized,
}

/// Takes the end of `preload` and the initializer, whose error can follow "the worker could not be
/// started: ".
pub type Initialized = Sender<Result<(), String>>;

/// Runs a worker on the thread that calls it, and returns what would be the exit code of a process.
pub type RunWorker = fn(WorkerThread) -> i32;
