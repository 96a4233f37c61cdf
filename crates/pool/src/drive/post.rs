//! The host's half of a worker slot: the process that fills it and the way to talk to it.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brigade_sys::arena::ResultView;
use brigade_sys::process::{Process, Signal};
use brigade_wire::WorkerId;
use brigade_wire::link::{LinkError, LinkSender, ipc, ring};
use brigade_wire::slots::SlotTable;

/// What the core holds for one worker slot, from the order to spawn until the death is handled.
pub(super) struct Post {
    pub(super) id: WorkerId,
    pub(super) life: Arc<Life>,
    /// Set when the handshake is done.
    pub(super) line: Option<Line>,
}

/// How tasks reach a ready worker.
pub(super) struct Line {
    pub(super) wire: Wire,
    pub(super) slots: Arc<SlotTable>,
    /// Where the worker puts large results; a worker without it has no arena of arguments either.
    pub(super) results: Option<Arc<ResultView>>,
    /// Kept, so that what the worker rang last is heard whatever it does to its own descriptors.
    pub(super) _ringers: Option<[OwnedFd; 2]>,
    /// Frames that were sent and not announced.
    pub(super) unannounced: u16,
    /// What the worker wrote made no sense; it is killed, and nothing it wrote is believed any more.
    pub(super) broken: bool,
}

/// With so many frames to answer a worker is not woken for each further one.
const MANY: u16 = 32;

/// The most frames that wait for an announcement. A wake-up costs as much as ten tasks that do nothing.
const UNANNOUNCED: u16 = 64;

/// The host's end of the link, of either flavour.
pub(super) enum Wire {
    /// Both directions: whoever collects reads it under the core's lock.
    Ring(Box<ring::HostEnd>),
    /// The way there; the worker's attendant has the way back.
    Ipc(ipc::HostSender),
}

impl Line {
    pub(super) fn sender(&mut self) -> &mut dyn LinkSender {
        match &mut self.wire {
            Wire::Ring(end) => &mut **end,
            Wire::Ipc(sender) => sender,
        }
    }

    /// Sends a frame. The worker is woken for it, but not for each one while it has [`MANY`] others to answer: if it has
    /// done them all and sleeps, somebody is about to collect the answers, and announces what has come since.
    pub(super) fn send(
        &mut self,
        head: &[u8],
        payload: &[u8],
        ahead: u16,
    ) -> Result<(), LinkError> {
        if ahead < MANY || self.unannounced == UNANNOUNCED {
            self.unannounced = 0;
            return self.sender().send(head, payload);
        }
        self.unannounced += 1;
        self.sender().send_unannounced(head, payload)
    }

    /// Whether the worker had to be woken for what was sent last.
    pub(super) fn woke_worker(&self) -> bool {
        match &self.wire {
            Wire::Ring(end) => end.woke_worker(),
            Wire::Ipc(_) => false,
        }
    }

    /// Wakes the worker for what was not announced.
    pub(super) fn announce(&mut self) {
        if std::mem::take(&mut self.unannounced) > 0 {
            // What cannot be announced cannot be sent either, and the next frame says so.
            let _ = self.sender().announce();
        }
    }
}

/// The process of a worker, shared by everyone who may have to end it.
///
/// A kill may be wanted before the process exists (the spawner has the order, the pool shuts down): then it
/// is remembered and done by the spawner.
pub(super) struct Life {
    state: Mutex<LifeState>,
    pid: OnceLock<u32>,
    /// SIGKILL was sent, and what it ran will not run again: its death may be reported before it is seen.
    may_be_reported: AtomicBool,
    /// It could not be killed, and nobody waits for its death.
    left_behind: AtomicBool,
}

/// How far a kill has come.
pub(super) enum Killed {
    /// There is no process yet, or its link is being opened: whoever does that kills it.
    NotYet,
    /// SIGKILL was sent to the whole group.
    Sent,
    /// It is stopped. What it has started is to be looked for before it is killed.
    Stopped(Arc<Process>),
}

enum LifeState {
    Ordered,
    /// Ended before it began.
    Doomed,
    Alive {
        process: Arc<Process>,
        killed: bool,
        connecting: bool,
    },
}

impl Life {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(LifeState::Ordered),
            pid: OnceLock::new(),
            may_be_reported: AtomicBool::new(false),
            left_behind: AtomicBool::new(false),
        })
    }

    /// The process exists now; false when nobody wants it any more.
    pub(super) fn begin(&self, process: &Arc<Process>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = !matches!(*state, LifeState::Doomed);
        *state =
            LifeState::Alive { process: Arc::clone(process), killed: false, connecting: false };
        let _ = self.pid.set(process.pid());
        wanted
    }

    /// Whether the worker was killed before its process existed.
    pub(super) fn is_doomed(&self) -> bool {
        matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), LifeState::Doomed)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.pid.get().copied()
    }

    pub(super) fn need_not_be_waited_for(&self) {
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

    /// Kills the process, or stops it if it may have started others, or sees to it that it never gets to work.
    pub(super) fn kill(&self) -> std::io::Result<Killed> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *state {
            LifeState::Ordered => *state = LifeState::Doomed,
            LifeState::Doomed => {}
            LifeState::Alive { process, killed, connecting } => {
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

    /// Opens the link to the process, unless it was killed; a kill that is wanted meanwhile follows at once.
    ///
    /// ipc-channel 0.23 never closes the socket of a connect that fails, and it fails when the process is dead.
    /// Shutdowns that kill starting workers would leak a descriptor now and then.
    pub(super) fn connect<R>(&self, open: impl FnOnce() -> R) -> Option<R> {
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *lock() {
            LifeState::Alive { killed: false, connecting, .. } => *connecting = true,
            _ => return None,
        }
        let result = open();
        let mut state = lock();
        if let LifeState::Alive { process, killed, connecting } = &mut *state {
            *connecting = false;
            if *killed {
                let process = Arc::clone(process);
                drop(state);
                // It fails only for a process that is gone already.
                let _ = process.signal_group(Signal::Kill);
            }
        }
        Some(result)
    }

    /// Asks the process group to end; a stopped one must be continued to hear it.
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
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            LifeState::Alive { process, .. } => Some(Arc::clone(process)),
            LifeState::Ordered | LifeState::Doomed => None,
        }
    }
}
