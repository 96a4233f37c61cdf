//! Puts a side of a ring to sleep until the other side has done something, and wakes it only if it
//! sleeps.
//!
//! It is an eventcount (Reed and Kanodia 1979) of one waiter, for which a flag in place of the
//! count is enough.
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

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use brigade_sys::clock::Monotonic;
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
        // Pairs with the fence of `ring`: it sees the store, or this side what was published.
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
        self.wake_up().is_some()
    }

    /// Like [`ring`](Self::ring), but returns the wake-up of a side that sleeps. Until that is
    /// dropped, others that ring take that side for awake.
    #[inline]
    pub fn wake_up(&self) -> Option<WakeUp> {
        // Pairs with the fence of `sleep_unless`.
        fence(Ordering::SeqCst);
        let word = self.word();
        let asleep =
            word.load(Ordering::Relaxed) != AWAKE && word.swap(AWAKE, Ordering::SeqCst) != AWAKE;
        asleep.then(|| WakeUp(self.clone()))
    }

    /// Returns `true` if the other side seems to sleep. Without a fence it may miss one that is
    /// falling asleep.
    #[inline]
    pub fn seems_asleep(&self) -> bool {
        self.word().load(Ordering::Relaxed) != AWAKE
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        &self.0.words()[BELL]
    }
}

/// A wake-up that is due, and happens when this is dropped.
#[derive(Debug)]
#[must_use = "dropping it is a system call, which may have a better place"]
pub struct WakeUp(Bell);

impl Drop for WakeUp {
    fn drop(&mut self) {
        futex::wake(self.0.word());
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
    /// The collector thread sleeps, and outcomes may be announced later while their worker has more
    /// to do. It must look again by itself after [`PATIENCE`], or [`LONG_PATIENCE`].
    PatientThread,
    /// The same for a caller.
    PatientCaller,
}

/// Time after which a patient listener looks again by itself.
pub const PATIENCE: Duration = Duration::from_millis(1);

/// The same while links hold more tasks than usual because many more wait: longer than workers need
/// until they announce outcomes.
pub const LONG_PATIENCE: Duration = Duration::from_millis(4);

/// Longest time from an outcome until a worker announces it at the end of a task, if it may do so
/// later. A wake-up takes several microseconds of a core that the workers could use.
const DELAY: Duration = Duration::from_millis(3);

/// The worker announces the outcome when this many times the work that is left to it has passed
/// since, so that it gets more before it has done everything.
const DONE_PER_LEFT: u32 = 3;

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
const RELIES: usize = 24;

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

    /// Sets the listener to ring from now on. Look at all rings after this call, unless it is
    /// [`Listener::Nobody`].
    #[inline]
    pub fn listen(&self, listener: Listener) {
        if self.change(LISTENER, listener as u64) && listener != Listener::Nobody {
            // Pairs with the fences of `RemoteDoorbell::ring` and `ring_later`.
            fence(Ordering::SeqCst);
        }
    }

    /// Sets whether workers may spin, which makes sense while cores are left for them.
    #[inline]
    pub fn allow_spinning(&self, allowed: bool) {
        self.change(MAY_SPIN, u64::from(allowed));
    }

    /// Sets whether a worker that is about to sleep rings the collector thread although nobody
    /// listens, because that thread relies on callers that keep coming. Look at all rings after
    /// this call, unless `relies` is `false`.
    #[inline]
    pub fn rely_on_callers(&self, relies: bool) {
        if self.change(RELIES, u64::from(relies)) && relies {
            // Pairs with the fence of `RemoteDoorbell::ring_before_sleep`.
            fence(Ordering::SeqCst);
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

    /// Stores a value if it is another one. Returns `true` if so.
    #[inline]
    fn change(&self, index: usize, value: u64) -> bool {
        let word = &self.page.words()[index];
        // Callers that come one after the other mostly set what is set already, and storing it
        // would take the page's cache line from the workers that have just read it.
        let changes = word.load(Ordering::Relaxed) != value;
        if changes {
            word.store(value, Ordering::Relaxed);
        }
        changes
    }
}

/// The worker's end of the host's doorbell.
#[derive(Debug)]
pub struct RemoteDoorbell {
    page: SegmentView,
    thread: RemoteWaker,
    caller: RemoteWaker,
    /// Time of the first outcome that was not announced, in nanoseconds; 0 if there is none. It is
    /// atomic because both ends of the link have it, which one thread uses.
    unannounced: AtomicU64,
    /// End of that outcome in the ring.
    end: AtomicU64,
}

impl RemoteDoorbell {
    /// Creates the worker's end from the page of a [`Doorbell`] and the two descriptors that it
    /// created [for this worker](Doorbell::for_worker).
    ///
    /// # Errors
    /// If the page cannot be mapped.
    pub fn new(page: OwnedFd, thread: RemoteWaker, caller: RemoteWaker) -> io::Result<Self> {
        let page = SegmentView::open(page, PAGE_WORDS)?;
        Ok(Self { page, thread, caller, unannounced: AtomicU64::new(0), end: AtomicU64::new(0) })
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
        // Pairs with the fence of `Doorbell::listen`.
        fence(Ordering::SeqCst);
        self.wake(self.page.load(LISTENER))
    }

    /// Like [`ring`](Self::ring), but lets a patient listener sleep for some time after the first
    /// of several outcomes, and longer if another worker has woken it in the meantime. `left` is
    /// the time that the work at hand takes. The outcome ends at `sent` in the ring, and `taken`
    /// returns the end of those that the host has taken.
    ///
    /// # Errors
    /// Like `ring`.
    #[inline]
    pub fn ring_later(
        &self,
        now: Monotonic,
        left: Duration,
        sent: u64,
        taken: impl FnOnce() -> u64,
    ) -> io::Result<()> {
        // Pairs with the fence of `Doorbell::listen`.
        fence(Ordering::SeqCst);
        let listener = self.page.load(LISTENER);
        if !matches!(listener, 3 | 4) {
            return self.wake(listener);
        }
        let first = self.unannounced.load(Ordering::Relaxed);
        if first > 0 {
            let limit = DELAY.min(left.saturating_mul(DONE_PER_LEFT));
            if now.saturating_since(Monotonic::from_nanos(first)) < limit {
                return Ok(());
            }
            if taken() < self.end.load(Ordering::Relaxed) {
                return self.wake(listener);
            }
        }
        self.unannounced.store(now.as_nanos().max(1), Ordering::Relaxed);
        self.end.store(sent, Ordering::Relaxed);
        Ok(())
    }

    /// Wakes the listener with this number, if it is one.
    #[inline]
    fn wake(&self, listener: u64) -> io::Result<()> {
        self.unannounced.store(0, Ordering::Relaxed);
        match listener {
            1 | 3 => self.thread.try_wake(),
            2 | 4 => self.caller.try_wake(),
            _ => Ok(()),
        }
    }

    /// Wakes the collector thread if it relies on callers and none listens; call it before
    /// sleeping. Callers that have left this worker without tasks may not come again soon.
    ///
    /// # Errors
    /// Like `ring`.
    pub fn ring_before_sleep(&self) -> io::Result<()> {
        // Pairs with the fences of `Doorbell::rely_on_callers` and `listen`.
        fence(Ordering::SeqCst);
        if self.page.load(RELIES) == 1 && self.page.load(LISTENER) == 0 {
            self.thread.try_wake()
        } else {
            Ok(())
        }
    }

    /// Announces what [`ring_later`](Self::ring_later) has not; call it when there is nothing more
    /// to do.
    ///
    /// # Errors
    /// Like `ring`.
    #[inline]
    pub fn ring_now(&self) -> io::Result<()> {
        if self.unannounced.load(Ordering::Relaxed) == 0 { Ok(()) } else { self.ring() }
    }
}
