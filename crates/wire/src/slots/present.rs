//! The word that says which function runs.
//!
//! The state of an entry stays *running* after the function has returned. This word does not: the
//! worker clears it when the function has returned or panicked, before it encodes the value, finds
//! names for the panic or sends anything. So the host knows whether what it sees of a worker, such
//! as its stack, belongs to a task, and that the time of a task is over although its outcome is not
//! there.
//!
//! It has no value until the worker runs. A worker that was forked is sent tasks before that. The
//! host gives up one that does not start in time, and only one of the two succeeds.
//!
//! It is written before the state becomes *running*, so that no task has that state without having
//! had the word. A worker may lie: the host does not wait for long on its account.

use std::sync::atomic::{AtomicU64, Ordering};

use super::SlotTable;

/// The worker has not run yet.
const UNKNOWN: u64 = 0;

/// No function runs.
const NOTHING: u64 = 1;

/// The host has given up the worker.
const GIVEN_UP: u64 = 2;

/// Worker: says that the function has returned.
#[inline]
pub fn leave(present: &AtomicU64) {
    present.store(NOTHING, Ordering::Release);
}

fn word_of(ring_index: u16, tag: u32) -> u64 {
    (u64::from(ring_index) + 1) << 32 | u64::from(tag)
}

impl SlotTable {
    /// Worker: says that the function of a task runs. [`begin`](Self::begin) does so.
    #[inline]
    pub fn enter(&self, ring_index: u16, tag: u32) {
        self.present().store(word_of(ring_index, tag), Ordering::Release);
    }

    /// Worker: says that the function has returned or panicked.
    #[inline]
    pub fn leave(&self) {
        leave(self.present());
    }

    /// Host: returns `true` if the function of this task runs. If it did when the task was seen to
    /// be running before, it has run all the time.
    pub fn runs(&self, ring_index: u16, tag: u32) -> bool {
        self.present().load(Ordering::Acquire) == word_of(ring_index, tag)
    }

    /// Worker: says that it runs, before its first task. Returns `false` if it was given up.
    pub fn start(&self) -> bool {
        let word = self.present();
        word.compare_exchange(UNKNOWN, NOTHING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Host: returns `true` if the worker has not started.
    pub fn is_silent(&self) -> bool {
        self.present().load(Ordering::Acquire) == UNKNOWN
    }

    /// Host: gives up the worker. Returns `false` if it has started.
    pub fn give_up(&self) -> bool {
        let word = self.present();
        word.compare_exchange(UNKNOWN, GIVEN_UP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Worker: returns the word, for [`leave`].
    #[inline]
    pub fn present(&self) -> &AtomicU64 {
        &self.segment.words()[usize::from(self.slots) * 4 + 2]
    }
}

#[cfg(test)]
mod tests {
    use brigade_sys::clock::now;

    use super::super::tests::tables;

    #[test]
    fn the_host_sees_which_function_runs() {
        let (host, worker) = tables();
        host.arm(3, 7);
        assert!(!host.runs(3, 7));
        assert!(worker.begin(3, 7, now()));
        assert!(host.runs(3, 7) && !host.runs(3, 8) && !host.runs(2, 7));
        worker.leave();
        assert!(!host.runs(3, 7));
        worker.enter(3, 7);
        assert!(host.runs(3, 7));
    }

    #[test]
    fn the_first_entry_without_a_tag_is_not_nothing() {
        let (host, worker) = tables();
        worker.enter(0, 0);
        assert!(host.runs(0, 0));
        worker.leave();
        assert!(!host.runs(0, 0));
    }

    #[test]
    fn a_worker_starts_or_is_given_up() {
        let (host, worker) = tables();
        assert!(host.is_silent());
        assert!(worker.start());
        assert!(!host.is_silent() && !host.give_up() && !host.runs(0, 0));
        let (host, worker) = tables();
        assert!(host.give_up() && !worker.start());
    }
}
