//! A worker slot on the host: its process and the connection to it.

use std::sync::Arc;

use brigade_supervisor::{Connection, WorkerProcess};
use brigade_wire::WorkerId;

use crate::buffers::Kept;
use crate::drive::deaths::interrupted::Interrupted;
use crate::drive::watch::usage::Measured;

/// The worker in a slot, from the order to start it until its death is handled.
pub(in crate::drive) struct WorkerSlot {
    pub(in crate::drive) id: WorkerId,
    pub(in crate::drive) process: Arc<WorkerProcess>,
    /// Set when the handshake is complete.
    pub(in crate::drive) connection: Option<Connection>,
    /// The interrupted attempts, if they were read before the death was observed.
    pub(in crate::drive) interrupted: Option<Interrupted>,
    /// Shared buffers that the worker keeps beyond their tasks.
    pub(in crate::drive) kept: Kept,
    /// The usage of its task, if that has a limit and was looked at.
    pub(in crate::drive) measured: Option<Measured>,
    /// A large value or argument is being copied: nothing more is read of it until then.
    pub(in crate::drive) awaits_copy: bool,
    /// Its limit on memory was set for a task with a limit of its own.
    pub(in crate::drive) is_prepared: bool,
}

impl WorkerSlot {
    pub(in crate::drive) fn new(process: Arc<WorkerProcess>) -> Self {
        let (id, kept) = (process.worker(), Kept::default());
        Self {
            id,
            process,
            connection: None,
            interrupted: None,
            kept,
            measured: None,
            awaits_copy: false,
            is_prepared: false,
        }
    }
}
