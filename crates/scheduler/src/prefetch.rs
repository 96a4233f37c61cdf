//! Decides how many tasks a busy worker is sent in advance.
//!
//! A prefetched task is written into the link of a busy worker, so that the worker finds it without
//! a wake-up. The number of prefetched tasks follows from the usual run time: a few hundred
//! microseconds of work hide the round trip to the host, and up to a millisecond while many tasks
//! wait. One task is prefetched as long as the round trip would be noticeable; nothing is
//! prefetched behind long tasks.
//!
//! Tasks that are shorter than a wake-up are packed; see [`packing`](crate::packing).

use brigade_time::Monotonic;

use crate::{Outbox, Scheduler, TaskData, WorkerEntry};

/// Up to this number, the frames of a worker are not doubled, because the tasks are long.
pub(crate) const FEW: usize = 2;

impl<T: TaskData> Scheduler<T> {
    /// Returns a busy worker that may be sent one more task.
    #[inline]
    pub(crate) fn find_busy_worker(
        &mut self,
        now: Monotonic,
        outbox: &mut Outbox<T>,
    ) -> Option<u32> {
        let depth = self.depth_now();
        if depth <= 1 {
            return None;
        }
        let has_room = |worker: &WorkerEntry| worker.may_prefetch() && worker.load() < depth;
        let current = self.workers.current();
        let slot = if has_room(current) && !current.load().is_multiple_of(self.pack()) {
            current.id.slot
        } else {
            self.workers.after_current().find(|worker| has_room(worker))?.id.slot
        };
        if !self.workers.is_complete() {
            self.plan_rescue(now, outbox);
        }
        Some(slot)
    }

    /// Like [`depth`](Self::depth), but twice as many brief tasks while many more wait, so that
    /// workers announce outcomes half as often. Enough tasks are left for other workers.
    #[inline]
    fn depth_now(&self) -> usize {
        let depth = self.depth();
        if depth > FEW && self.tasks.queued() > 2 * depth * self.workers.len() {
            (2 * depth).min(self.settings.credit.into())
        } else {
            depth
        }
    }

    /// Returns the maximum number of frames that a worker may have, including the one that it runs.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.run_times.depth().min(self.settings.credit.into())
    }
}
