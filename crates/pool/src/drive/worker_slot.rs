//! A worker slot on the host: its process and the connection to it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use brigade_sys::arena::ResultView;
use brigade_sys::process::{Process, Signal};
use brigade_sys::sync::Mutex;
use brigade_wire::WorkerId;
use brigade_wire::link::{LinkError, LinkSender, ring};
use brigade_wire::slots::SlotTable;

/// The worker in a slot, from the order to start it until its death is handled.
pub(super) struct WorkerSlot {
    pub(super) id: WorkerId,
    pub(super) state: Arc<ProcessState>,
    /// Set when the handshake is complete.
    pub(super) connection: Option<Connection>,
}

/// The host's end of the link to a ready worker, with its bookkeeping.
pub(super) struct Connection {
    pub(super) link: HostLink,
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

/// The process of a worker, shared by all threads that may have to end it.
///
/// A kill may be requested before the process exists, while the spawner has the order and the pool
/// shuts down. It is then remembered, and the spawner carries it out.
pub(super) struct ProcessState {
    stage: Mutex<ProcessStage>,
    pid: OnceLock<u32>,
    /// SIGKILL was sent and the interrupted task will not be retried, so the death may be reported
    /// before the process is reaped.
    may_be_reported: AtomicBool,
    /// The process could not be killed, and nothing waits for its death.
    left_behind: AtomicBool,
}

/// Progress of a kill.
pub(super) enum Killed {
    /// There is no process yet, or its link is being opened; the thread that does so kills it.
    NotYet,
    /// SIGKILL was sent to the whole process group.
    Sent,
    /// The process is stopped. The processes that it has started have to be found before it is
    /// killed.
    Stopped(Arc<Process>),
}

enum ProcessStage {
    Ordered,
    /// Killed before the process was started.
    KilledBeforeStart,
    Alive {
        process: Arc<Process>,
        killed: bool,
        connecting: bool,
    },
}

impl ProcessState {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            stage: Mutex::new(ProcessStage::Ordered),
            pid: OnceLock::new(),
            may_be_reported: AtomicBool::new(false),
            left_behind: AtomicBool::new(false),
        })
    }

    /// Records the new process. Returns `false` if a kill was requested in the meantime.
    pub(super) fn set_started(&self, process: &Arc<Process>) -> bool {
        let mut state = self.stage.lock();
        let wanted = !matches!(*state, ProcessStage::KilledBeforeStart);
        *state =
            ProcessStage::Alive { process: Arc::clone(process), killed: false, connecting: false };
        let _ = self.pid.set(process.pid());
        wanted
    }

    /// Returns `true` if the worker was killed before its process existed.
    pub(super) fn was_killed_before_start(&self) -> bool {
        matches!(*self.stage.lock(), ProcessStage::KilledBeforeStart)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.get().copied()
    }

    pub(super) fn allow_early_report(&self) {
        self.may_be_reported.store(true, Ordering::Release);
    }

    pub(super) fn may_be_reported(&self) -> bool {
        self.may_be_reported.load(Ordering::Acquire)
    }

    pub(super) fn leave_behind(&self) {
        self.left_behind.store(true, Ordering::Release);
    }

    pub(super) fn is_left_behind(&self) -> bool {
        self.left_behind.load(Ordering::Acquire)
    }

    /// Kills the process, or stops it if it may have started others. If there is no process yet,
    /// prevents its start.
    pub(super) fn kill(&self) -> std::io::Result<Killed> {
        let mut state = self.stage.lock();
        match &mut *state {
            ProcessStage::Ordered => *state = ProcessStage::KilledBeforeStart,
            ProcessStage::KilledBeforeStart => {}
            ProcessStage::Alive { process, killed, connecting } => {
                *killed = true;
                if !*connecting {
                    let process = Arc::clone(process);
                    drop(state);
                    let is_killed = process.kill_if_alone()?;
                    return Ok(if is_killed { Killed::Sent } else { Killed::Stopped(process) });
                }
            }
        }
        Ok(Killed::NotYet)
    }

    /// Opens the link to the process, unless it was killed. A kill that is requested meanwhile
    /// follows immediately.
    ///
    /// ipc-channel 0.23 never closes the socket of a failed connect, and connecting to a dead
    /// process fails. Without this, shutdowns that kill starting workers would occasionally leak a
    /// descriptor.
    pub(super) fn connect<R>(&self, open: impl FnOnce() -> R) -> Option<R> {
        match &mut *self.stage.lock() {
            ProcessStage::Alive { killed: false, connecting, .. } => *connecting = true,
            _ => return None,
        }
        let result = open();
        let mut state = self.stage.lock();
        if let ProcessStage::Alive { process, killed, connecting } = &mut *state {
            *connecting = false;
            if *killed {
                let process = Arc::clone(process);
                drop(state);
                // This fails only if the process is already gone.
                let _ = process.signal_group(Signal::Kill);
            }
        }
        Some(result)
    }

    /// Asks the process group to end. A stopped group has to be continued to receive the signal.
    pub(super) fn terminate(&self) -> std::io::Result<()> {
        if let Some(process) = self.process() {
            process.signal_group(Signal::Terminate)?;
            process.signal_group(Signal::Continue)?;
        }
        Ok(())
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.process().is_some_and(|process| process.is_stopped())
    }

    fn process(&self) -> Option<Arc<Process>> {
        match &*self.stage.lock() {
            ProcessStage::Alive { process, .. } => Some(Arc::clone(process)),
            ProcessStage::Ordered | ProcessStage::KilledBeforeStart => None,
        }
    }
}
