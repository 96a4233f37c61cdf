//! The record that tells if futures that were woken have yet to be polled.
//!
//! An executor that polls futures of this pool has something else to do until it has polled all of
//! those that were woken together. After that its thread would sleep, so the next future that has
//! to wait looks for outcomes first; see `glances`.
//!
//! The future of the only task in the pool does not look for this reason: each of many tasks of the
//! executor would wait for its outcome before the next one submits anything.
//!
//! This is a hint. A future that was woken may be dropped, or polled in another order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brigade_wire::TaskId;

/// The futures that were woken last.
#[derive(Debug, Default)]
pub(crate) struct WokenFutures {
    /// The task of the future that is polled after most of the others; 0 for none.
    last: AtomicU64,
    are_polled: AtomicBool,
    /// `true` if the pool had nothing else to do at the last submission.
    is_alone: AtomicBool,
}

impl WokenFutures {
    /// Records that the futures of these tasks are about to be woken, in this order.
    ///
    /// Most executors poll them in this order, too; some begin with the last one. So it is the last
    /// but one that tells when they are through.
    pub(in crate::drive) fn wake(&self, tasks: impl DoubleEndedIterator<Item = TaskId>) {
        let mut latest = tasks.rev();
        let Some(last) = latest.next() else { return };
        let last = latest.next().unwrap_or(last);
        self.last.store(last.get(), Ordering::Relaxed);
        self.are_polled.store(false, Ordering::Relaxed);
    }

    /// Records a submission. `is_alone` is `true` if the pool has nothing else to do.
    #[inline]
    pub(in crate::drive) fn submit(&self, is_alone: bool) {
        // Mostly it stays the same.
        if self.is_alone.load(Ordering::Relaxed) != is_alone {
            self.is_alone.store(is_alone, Ordering::Relaxed);
        }
    }

    /// Records that the future of a task was polled and is ready.
    #[inline]
    pub(crate) fn poll(&self, task: TaskId) {
        if self.last.load(Ordering::Relaxed) == task.get() {
            self.are_polled.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if all of them were polled and others wait.
    #[inline]
    pub(crate) fn are_polled(&self) -> bool {
        self.are_polled.load(Ordering::Relaxed) && !self.is_alone.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn futures_are_polled_once_the_last_but_one_is() {
        let woken = WokenFutures::default();
        let [first, second, third] = [1, 2, 3].map(TaskId::new);
        assert!(!woken.are_polled());
        woken.wake([first, second, third].into_iter());
        let mut after = |task| {
            woken.poll(task);
            woken.are_polled()
        };
        assert_eq!([first, second].map(&mut after), [false, true]);
        woken.wake([third].into_iter());
        assert_eq!([second, third].map(&mut after), [false, true]);
        woken.wake([].into_iter());
        assert!(woken.are_polled());
        woken.submit(true);
        assert!(!woken.are_polled(), "one after the other would wait for its outcome");
        woken.submit(false);
        assert!(woken.are_polled());
    }
}
