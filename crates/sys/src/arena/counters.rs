//! The counters of a block of results, independent of their memory, so that loom can check them.
//!
//! ```text
//! exported   in the worker: how often it has named the block in a message
//! released   in the header of the block, written by the host: how many of these namings it no
//!            longer uses
//! ```
//! The worker reuses a block when it has no handle of it and both are equal. Only the difference
//! counts: a new block takes the value that `released` happens to have, so that each word has one
//! writer, and both may wrap around.
//!
//! A worker waits for memory by an eventcount ([`ReleaseBell`]): it announces itself and then looks
//! at the counters; the host counts a release and then looks for an announcement. Both have a fence
//! in between, so one of them sees the other: no release is missed by a worker that goes to sleep.

use std::sync::atomic::Ordering::{self, Acquire, Relaxed, Release, SeqCst};

#[cfg(all(test, loom))]
mod loom;

/// An atomic word: the standard library's, or loom's in the model beside this file. Both get their
/// orderings from the functions below, so loom checks the code that runs.
pub(super) trait Word {
    fn load(&self, ordering: Ordering) -> u64;
    fn store(&self, value: u64, ordering: Ordering);
    /// Adds and wraps around.
    fn add(&self, value: u64, ordering: Ordering);
    fn fence(ordering: Ordering);
}

impl Word for std::sync::atomic::AtomicU64 {
    fn load(&self, ordering: Ordering) -> u64 {
        self.load(ordering)
    }

    fn store(&self, value: u64, ordering: Ordering) {
        self.store(value, ordering);
    }

    fn add(&self, value: u64, ordering: Ordering) {
        self.fetch_add(value, ordering);
    }

    fn fence(ordering: Ordering) {
        std::sync::atomic::fence(ordering);
    }
}

/// The two counters of a block.
pub(super) struct BlockCounters<'a, W> {
    pub(super) exported: &'a W,
    pub(super) released: &'a W,
}

impl<W: Word> BlockCounters<'_, W> {
    /// Begins a block that nobody has named: on the worker, before its first export.
    pub(super) fn begin(&self) {
        self.exported.store(self.released.load(Relaxed), Relaxed);
    }

    /// Counts a naming: on the worker, before the message is sent, with which the host sees it.
    pub(super) fn export(&self) {
        self.exported.add(1, Relaxed);
    }

    /// Takes back a naming that was not sent.
    pub(super) fn undo_export(&self) {
        self.exported.add(1_u64.wrapping_neg(), Relaxed);
    }

    /// Returns `true` if the host uses nothing of the block.
    pub(super) fn is_released(&self) -> bool {
        // Acquire: the worker's next write to the bytes is after the host's last look at them.
        self.exported.load(Relaxed) == self.released.load(Acquire)
    }
}

/// Ends the host's use of one naming.
pub(super) fn release<W: Word>(released: &W) {
    // Release: the host's last look at the bytes was before.
    released.add(1, Release);
}

/// The words by which threads of a worker wait for a release.
pub(super) struct ReleaseBell<'a, W> {
    /// Number of threads that wait or are about to.
    pub(super) waiting: &'a W,
    /// Number of rings. A waiting thread sleeps while it does not change.
    pub(super) rings: &'a W,
}

impl<W: Word> ReleaseBell<'_, W> {
    /// Announces a waiting thread. Look at the counters after this.
    pub(super) fn announce(&self) {
        self.waiting.add(1, Relaxed);
        // Pairs with the fence of `ring`: it sees this thread, or this thread the release.
        W::fence(SeqCst);
    }

    /// Withdraws an announcement.
    pub(super) fn withdraw(&self) {
        self.waiting.add(1_u64.wrapping_neg(), Relaxed);
    }

    /// Returns the number of rings: read it before the counters, and sleep while it stays the same.
    pub(super) fn seen(&self) -> u64 {
        self.rings.load(Acquire)
    }

    /// Rings after a release if a thread waits. Returns `true` if the threads have to be woken.
    #[must_use]
    pub(super) fn ring(&self) -> bool {
        // Pairs with the fence of `announce`.
        W::fence(SeqCst);
        let waits = self.waiting.load(Relaxed) != 0;
        if waits {
            self.rings.add(1, Release);
        }
        waits
    }
}
