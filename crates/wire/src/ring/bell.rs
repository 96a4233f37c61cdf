//! Puts a side of a ring to sleep until the other side has done something, and wakes it only if it
//! sleeps.
//!
//! The race to avoid: a consumer finds nothing and goes to sleep while the producer publishes and
//! sees nobody asleep. Both do two steps with a full fence between them, in opposite order:
//!
//! ```text
//! sleeper                          other side
//!   bell = ASLEEP                    publish
//!   fence                            fence
//!   anything published? stay up      bell == ASLEEP? swap it to AWAKE and wake
//!   sleep while bell == ASLEEP
//! ```
//! Of two such threads at least one sees the other's store, so either the sleeper stays up or it is
//! woken. If it is woken before it sleeps, the word has changed and the kernel does not let it
//! sleep.
//!
//! A bell in a ring is a futex word, which works even after a task has closed all descriptors of
//! the process. The host waits for many workers at once, so each worker wakes it through event
//! descriptors of its own: [`Doorbell`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use brigade_sys::futex;
use brigade_sys::segment::{Segment, SegmentView};
use brigade_sys::wake_set::{RemoteWaker, WakeSet};

use super::{BELL, Region};

pub(super) const AWAKE: u64 = 0;
pub(super) const ASLEEP: u64 = 1;

/// The futex bell of a ring, for the side that has no descriptor to wait for.
#[derive(Debug, Clone)]
pub struct Bell(Region);

impl Bell {
    /// Creates the bell of a ring's region.
    pub fn new(region: Region) -> Self {
        Self(region)
    }

    /// Sleeps until rung, unless `stay_up` returns `true` after the word already says that this
    /// side sleeps.
    pub fn sleep_unless(&self, stay_up: impl Fn() -> bool) {
        let word = self.word();
        word.store(ASLEEP, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        while word.load(Ordering::Relaxed) == ASLEEP {
            if stay_up() {
                word.store(AWAKE, Ordering::Relaxed);
                return;
            }
            futex::wait(word, ASLEEP);
        }
    }

    /// Wakes the other side if it sleeps, or if an unexpected value hides whether it sleeps; call
    /// it after publishing. Returns `true` if it woke the other side.
    #[inline]
    pub fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        let word = self.word();
        let asleep =
            word.load(Ordering::Relaxed) != AWAKE && word.swap(AWAKE, Ordering::SeqCst) != AWAKE;
        if asleep {
            futex::wake(word);
        }
        asleep
    }

    fn word(&self) -> &AtomicU64 {
        &self.0.words()[BELL]
    }
}

/// The waiter on the host's side to wake after a worker has sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// A thread is awake and looks at the rings.
    Nobody,
    /// The collector thread sleeps.
    Thread,
    /// A caller that waits for a task sleeps.
    Caller,
}

/// The host's doorbell: one for all workers of a pool. The host sets the listener; workers ring
/// that listener.
///
/// A wake-up is kept until it is taken, so a worker that rings between the host's last look and its
/// sleep is not lost. All workers read the same page and none can write to it: a worker that could
/// write might tell the others that nobody listens.
#[derive(Debug)]
pub struct Doorbell {
    page: Segment,
    thread: WakeSet,
    caller: WakeSet,
}

const LISTENER: usize = 0;
const MAY_SPIN: usize = 16;

/// Number of words of the doorbell's page.
const PAGE_WORDS: usize = 32;

impl Doorbell {
    /// Creates a doorbell.
    ///
    /// # Errors
    /// If memory or descriptors run out.
    pub fn new() -> io::Result<Self> {
        let page = Segment::create_for_readers("brigade-bell", PAGE_WORDS)?;
        Ok(Self { page, thread: WakeSet::new()?, caller: WakeSet::new()? })
    }

    /// Creates the descriptors for a worker's [`RemoteDoorbell`]. Keep them until the worker's last
    /// message was taken.
    ///
    /// # Errors
    /// If descriptors run out.
    pub fn for_worker(&self) -> io::Result<[OwnedFd; 2]> {
        Ok([self.thread.remote()?, self.caller.remote()?])
    }

    /// Sets the listener to ring from now on. Look at all rings after this call.
    pub fn listen(&self, listener: Listener) {
        let value = match listener {
            Listener::Nobody => 0,
            Listener::Thread => 1,
            Listener::Caller => 2,
        };
        self.word(LISTENER).store(value, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Sets whether workers may spin, which makes sense while cores are left for them.
    pub fn allow_spinning(&self, allowed: bool) {
        let (word, value) = (self.word(MAY_SPIN), u64::from(allowed));
        if word.load(Ordering::Relaxed) != value {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Returns the wake set of the collector thread.
    pub fn thread(&self) -> &WakeSet {
        &self.thread
    }

    /// Returns the wake set of a waiting caller.
    pub fn caller(&self) -> &WakeSet {
        &self.caller
    }

    /// Returns the page to hand over to workers.
    pub fn page(&self) -> &Segment {
        &self.page
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        &self.page.words()[index]
    }
}

/// The worker's end of the host's doorbell.
#[derive(Debug)]
pub struct RemoteDoorbell {
    page: SegmentView,
    thread: RemoteWaker,
    caller: RemoteWaker,
}

impl RemoteDoorbell {
    /// Creates the worker's end from the page of a [`Doorbell`] and the two descriptors that it
    /// created [for this worker](Doorbell::for_worker).
    ///
    /// # Errors
    /// If the page cannot be mapped.
    pub fn new(page: OwnedFd, thread: RemoteWaker, caller: RemoteWaker) -> io::Result<Self> {
        Ok(Self { page: SegmentView::open(page, PAGE_WORDS)?, thread, caller })
    }

    /// Returns `true` if the worker may spin before it sleeps.
    #[inline]
    pub fn may_spin(&self) -> bool {
        self.page.load(MAY_SPIN) == 1
    }

    /// Wakes the host's listener; call it after publishing.
    ///
    /// # Errors
    /// If a descriptor was closed by other code; a new file with its number is left alone.
    #[inline]
    pub fn ring(&self) -> io::Result<()> {
        fence(Ordering::SeqCst);
        match self.page.load(LISTENER) {
            1 => self.thread.try_wake(),
            2 => self.caller.try_wake(),
            _ => Ok(()),
        }
    }
}
