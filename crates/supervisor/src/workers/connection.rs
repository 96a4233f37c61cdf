//! The host's end of a worker's link.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use brigade_sys::arena::ResultView;
use brigade_sys::clock::Monotonic;
use brigade_wire::link::connect::EndMark;
use brigade_wire::link::{LinkError, LinkReceiver, LinkSender, ring};
use brigade_wire::ring::WakeUp;
use brigade_wire::shared::SharedBuf;
use brigade_wire::slots::SlotTable;

use crate::workers::sent_arenas::SentArenas;
use crate::workers::worker_process::WorkerProcess;

/// The connection to a worker that can take tasks.
pub struct Connected {
    /// The connection.
    pub connection: Connection,
    /// The direction to the host, if the link is not a ring.
    pub receiver: Option<Box<dyn LinkReceiver>>,
    /// Time at which the worker was about to run the initializer, if there is one.
    pub initializing: Option<Monotonic>,
}

/// The host's end of the link to a ready worker, with its bookkeeping.
pub struct Connection {
    /// The host's end of the link.
    pub link: HostLink,
    /// Set if the attendant reads the link; then it reports the death too.
    pub end_mark: Option<Box<dyn EndMark>>,
    /// States of the tasks that the worker was sent.
    pub table: Arc<SlotTable>,
    /// The worker's arena for large values. A worker without it has no arena for arguments either.
    pub results: Option<Arc<ResultView>>,
    /// The worker can read the arena of arguments, if it has one of its own.
    pub(crate) reads_arguments: bool,
    /// `true` if the worker can call functions by their offsets.
    pub same_build: bool,
    pub(crate) sent_arenas: SentArenas,
    /// Kept open so that the worker's last ring is heard, whatever it does to its own descriptors.
    pub(crate) ringers: Option<[OwnedFd; 2]>,
    /// Number of frames that were sent but not announced.
    unannounced: u16,
    /// `true` once the worker has broken the protocol: it is killed, and nothing it wrote is
    /// trusted anymore.
    pub broken: bool,
}

/// A worker with this many frames to answer is not woken for each further one.
const MANY_UNANSWERED: u16 = 32;

/// Maximum number of unannounced frames. A wake-up costs as much as ten empty tasks.
const MAX_UNANNOUNCED: u16 = 64;

/// The host's end of the link.
pub enum HostLink {
    /// Both directions; whoever collects reads it under the core's lock.
    Ring(Box<ring::HostEnd>),
    /// The direction to the worker of a link that was opened in the handshake; the worker's
    /// attendant has the other one.
    Connected(Box<dyn LinkSender>),
}

/// Calls the end of a link: rings directly, because every task passes there.
macro_rules! on_end {
    ($link:expr, $end:ident => $call:expr) => {
        match $link {
            HostLink::Ring($end) => $call,
            HostLink::Connected($end) => $call,
        }
    };
}

impl LinkSender for HostLink {
    #[inline]
    fn send_unannounced(&mut self, head: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        on_end!(self, end => end.send_unannounced(head, payload))
    }

    #[inline]
    fn send_words(&mut self, head: &[u64], payload: &[u8]) -> Result<(), LinkError> {
        on_end!(self, end => end.send_words(head, payload))
    }

    #[inline]
    fn announce(&mut self) -> Result<(), LinkError> {
        on_end!(self, end => end.announce())
    }
}

impl HostLink {
    /// Returns `true` if the worker seems to sleep; only an announcement is sure to wake it.
    #[inline]
    fn seems_asleep(&self) -> bool {
        match self {
            Self::Ring(end) => end.worker_bell.seems_asleep(),
            Self::Connected(_) => false,
        }
    }

    /// Announces what was sent. Returns the wake-up of a worker that sleeps; a link that is not a
    /// ring has woken it.
    #[inline]
    fn wake_up(&mut self) -> Result<Option<WakeUp>, LinkError> {
        match self {
            Self::Ring(end) => Ok(end.worker_bell.wake_up()),
            Self::Connected(sender) => sender.announce().map(|()| None),
        }
    }
}

impl Connection {
    pub(crate) fn new(link: HostLink, table: Arc<SlotTable>, same_build: bool) -> Self {
        Self {
            link,
            end_mark: None,
            table,
            results: None,
            reads_arguments: false,
            same_build,
            sent_arenas: SentArenas::default(),
            ringers: None,
            unannounced: 0,
            broken: false,
        }
    }

    /// Returns `true` if the worker can read the arena of arguments.
    pub fn reads_arguments(&self) -> bool {
        self.reads_arguments && self.results.is_some()
    }

    /// Makes sure that the worker can read a buffer in shared memory. Returns `false` if it cannot,
    /// and needs the bytes.
    pub fn share(&mut self, process: &WorkerProcess, buffer: &SharedBuf) -> bool {
        let Some(own) = &self.results else { return false };
        buffer.results().is_none_or(|arena| {
            own.reference() == arena.reference() || self.sent_arenas.send(process.control(), arena)
        })
    }

    /// Sends a frame. Returns the wake-up of a worker that sleeps, so that its system call can wait
    /// until no lock is held.
    ///
    /// The worker is woken for it, unless it has others to answer and does not seem to sleep. It
    /// may be about to, but only after it has finished those: then some thread is going to collect
    /// the outcomes, and announces the new frames. So a frame rarely needs the fence of an
    /// announcement, which waits until the worker's core has given up the lines of the ring. While
    /// the worker has `MANY_UNANSWERED` frames to answer, it is not even woken if it sleeps.
    #[inline]
    pub fn send(
        &mut self,
        head: &[u8],
        payload: &[u8],
        unanswered: u16,
    ) -> Result<Option<WakeUp>, LinkError> {
        self.link.send_unannounced(head, payload)?;
        self.announce_if_idle(unanswered)
    }

    /// Sends a frame with the words of a short head; see [`LinkSender::send_words`].
    #[inline]
    pub fn send_words(
        &mut self,
        head: &[u64],
        payload: &[u8],
        unanswered: u16,
    ) -> Result<Option<WakeUp>, LinkError> {
        self.link.send_words(head, payload)?;
        self.announce_if_idle(unanswered)
    }

    #[inline]
    fn announce_if_idle(&mut self, unanswered: u16) -> Result<Option<WakeUp>, LinkError> {
        self.unannounced += 1;
        let is_due = unanswered == 0 || self.unannounced > MAX_UNANNOUNCED;
        if is_due || unanswered < MANY_UNANSWERED && self.link.seems_asleep() {
            self.unannounced = 0;
            return self.link.wake_up();
        }
        Ok(None)
    }

    /// Announces the frames that were not. Returns the wake-up of a worker that sleeps.
    #[inline]
    pub fn announce(&mut self) -> Option<WakeUp> {
        if std::mem::take(&mut self.unannounced) == 0 {
            return None;
        }
        // If announcing fails, sending fails too, and the next frame reports it.
        self.link.wake_up().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::thread;

    use brigade_sys::segment::Segment;
    use brigade_sys::wake_set::RemoteWaker;
    use brigade_wire::link::ring::{HostEnd, WorkerEnd, words};
    use brigade_wire::ring::{Doorbell, RemoteDoorbell};

    use super::*;

    const SLOTS: u16 = 4;

    /// It falls asleep many times, at any moment, and has no task between two announcements.
    #[test]
    fn a_worker_gets_all_frames_up_to_an_announcement() {
        let segment = Arc::new(Segment::create("test", words(SLOTS)).expect("a segment"));
        let doorbell = Doorbell::new().expect("a doorbell");
        let ringers = doorbell.for_worker().expect("descriptors");
        let [thread, caller] = ringers.map(RemoteWaker::from_fd);
        let page = doorbell.page().as_fd().try_clone_to_owned().expect("a descriptor");
        let remote = RemoteDoorbell::new(page, thread, caller).expect("the same page");
        let host = HostEnd::new(&segment, SLOTS, 100);
        let table = Arc::new(SlotTable::new(Arc::clone(&segment), SLOTS));
        let mut connection = Connection::new(HostLink::Ring(Box::new(host)), table, true);
        let mut worker = WorkerEnd::new(&segment, SLOTS, remote, 100);
        let receiver = thread::spawn(move || {
            for number in 0..10_000_u32 {
                assert_eq!(worker.receiver.receive().expect("a frame"), number.to_le_bytes());
            }
        });
        for number in 0..10_000_u32 {
            let unanswered = u16::try_from(number % 100).expect("below a hundred");
            drop(connection.send(&number.to_le_bytes(), &[], unanswered).expect("room"));
            if number % 100 == 99 {
                drop(connection.announce());
            }
        }
        receiver.join().expect("all frames");
    }
}
