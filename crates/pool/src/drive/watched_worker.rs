//! A ready worker as the reaper and the report of its death see it.

use std::sync::{Arc, OnceLock};

use brigade_sys::control::ControlSocket;
use brigade_sys::lifeline::GroupLifeline;
use brigade_sys::process::{Exit, Process};
use brigade_wire::WorkerId;
use brigade_wire::link::connect::EndMark;
use brigade_wire::slots::SlotTable;

use super::death::Interrupted;
use super::output::WorkerStreams;
use super::worker_slot::ProcessState;

/// A ready worker whose death the reaper waits for.
pub(super) struct WatchedWorker {
    pub(super) worker: WorkerId,
    pub(super) process: Arc<Process>,
    /// Kept until the process is reaped.
    pub(super) _lifeline: Option<GroupLifeline>,
    pub(super) state: Arc<ProcessState>,
    pub(super) streams: WorkerStreams,
    pub(super) table: Arc<SlotTable>,
    /// Set if the attendant reads the link; then it reports the death too.
    pub(super) end_mark: Option<Box<dyn EndMark>>,
    /// Set before the end mark is put into the link.
    pub(super) death: OnceLock<Death>,
    /// Kept open, because closing it would tell the worker that the host is gone.
    pub(super) control: ControlSocket,
}

/// The end of a process.
#[derive(Debug, Clone)]
pub(super) struct Death {
    pub(super) exit: Exit,
    pub(super) stderr_tail: String,
    /// The interrupted attempts, if they were read before the death was observed.
    pub(super) interrupted: Option<Interrupted>,
}
