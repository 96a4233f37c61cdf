//! A worker slot on the host: its process and the connection to it.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use brigade_supervisor::WorkerProcess;
use brigade_sys::arena::ResultView;
use brigade_wire::WorkerId;
use brigade_wire::link::connect::EndMark;
use brigade_wire::link::{LinkError, LinkSender, ring};
use brigade_wire::slots::SlotTable;

use super::interrupted::Interrupted;

/// The worker in a slot, from the order to start it until its death is handled.
pub(super) struct WorkerSlot {
    pub(super) id: WorkerId,
    pub(super) process: Arc<WorkerProcess>,
    /// Set when the handshake is complete.
    pub(super) connection: Option<Connection>,
    /// The interrupted attempts, if they were read before the death was observed.
    pub(super) interrupted: Option<Interrupted>,
}

impl WorkerSlot {
    pub(super) fn new(process: Arc<WorkerProcess>) -> Self {
        Self { id: process.worker(), process, connection: None, interrupted: None }
    }
}

/// The host's end of the link to a ready worker, with its bookkeeping.
pub(super) struct Connection {
    pub(super) link: HostLink,
    /// Set if the attendant reads the link; then it reports the death too.
    pub(super) end_mark: Option<Box<dyn EndMark>>,
    pub(super) table: Arc<SlotTable>,
    /// The worker's arena for large values. A worker without it has no arena for arguments either.
    pub(super) results: Option<Arc<ResultView>>,
    /// Kept open so that the worker's last ring is heard, whatever it does to its own descriptors.
    pub(super) _ringers: Option<[OwnedFd; 2]>,
    /// Number of frames that were sent but not announced.
    pub(super) unannounced: u16,
    /// `true` once the worker has broken the protocol: it is killed, and nothing it wrote is
    /// trusted anymore.
    pub(super) broken: bool,
}

/// A worker with this many frames to answer is not woken for each further one.
const MANY_UNANSWERED: u16 = 32;

/// Maximum number of unannounced frames. A wake-up costs as much as ten empty tasks.
const MAX_UNANNOUNCED: u16 = 64;

/// The host's end of the link.
pub(super) enum HostLink {
    /// Both directions; whoever collects reads it under the core's lock.
    Ring(Box<ring::HostEnd>),
    /// The direction to the worker of a link that was opened in the handshake; the worker's
    /// attendant has the other one.
    Connected(Box<dyn LinkSender>),
}

/// Rings are called directly, because every task passes here.
impl LinkSender for HostLink {
    fn send(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        match self {
            Self::Ring(end) => end.send(head, payload),
            Self::Connected(sender) => sender.send(head, payload),
        }
    }

    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        match self {
            Self::Ring(end) => end.send_unannounced(head, payload),
            Self::Connected(sender) => sender.send_unannounced(head, payload),
        }
    }

    fn announce(&mut self) -> Result<(), LinkError> {
        match self {
            Self::Ring(end) => end.announce(),
            Self::Connected(sender) => sender.announce(),
        }
    }
}

impl Connection {
    /// Sends a frame.
    ///
    /// The worker is woken for it, but not for each frame while it has [`MANY_UNANSWERED`] others
    /// to answer: if it has finished them all and sleeps, some thread is about to collect the
    /// outcomes, and announces the new frames.
    pub(super) fn send(
        &mut self,
        head: &[u8],
        payload: &[u8],
        unanswered: u16,
    ) -> Result<(), LinkError> {
        if unanswered < MANY_UNANSWERED || self.unannounced == MAX_UNANNOUNCED {
            self.unannounced = 0;
            return self.link.send(head, payload);
        }
        self.unannounced += 1;
        self.link.send_unannounced(head, payload)
    }

    /// Returns `true` if the worker had to be woken for the last frame.
    pub(super) fn woke_worker(&self) -> bool {
        match &self.link {
            HostLink::Ring(end) => end.woke_worker(),
            HostLink::Connected(_) => false,
        }
    }

    /// Wakes the worker for frames that were not announced.
    pub(super) fn announce(&mut self) {
        if std::mem::take(&mut self.unannounced) > 0 {
            // If announcing fails, sending fails too, and the next frame reports it.
            let _ = self.link.announce();
        }
    }
}
