//! A worker slot on the host: its process and the connection to it.

use std::sync::Arc;

use brigade_supervisor::{Connection, WorkerProcess};
use brigade_wire::WorkerId;

use super::interrupted::Interrupted;
use super::usage::Measured;
use crate::buffers::Kept;

/// The worker in a slot, from the order to start it until its death is handled.
pub(super) struct WorkerSlot {
    pub(super) id: WorkerId,
    pub(super) process: Arc<WorkerProcess>,
    /// Set when the handshake is complete.
    pub(super) connection: Option<Connection>,
    /// The interrupted attempts, if they were read before the death was observed.
    pub(super) interrupted: Option<Interrupted>,
    /// Shared buffers that the worker keeps beyond their tasks.
    pub(super) kept: Kept,
    /// The usage of its task, if that has a limit and was looked at.
    pub(super) measured: Option<Measured>,
    /// A large value or argument is being copied: nothing more is read of it until then.
    pub(super) awaits_copy: bool,
    /// Its limit on memory was set for a task with a limit of its own.
    pub(super) is_prepared: bool,
}

impl WorkerSlot {
    pub(super) fn new(process: Arc<WorkerProcess>) -> Self {
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
