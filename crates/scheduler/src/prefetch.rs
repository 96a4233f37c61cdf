//! Decides how many tasks a busy worker is sent in advance.
//!
//! A prefetched task is written into the link of a busy worker, so that the worker finds it without
//! a wake-up. The number of prefetched tasks follows from the usual run time: a few hundred
//! microseconds of work hide the round trip to the host, and up to four milliseconds while many
//! tasks wait. One task is prefetched as long as the round trip would be noticeable; nothing is
//! prefetched behind long tasks.
//!
//! Tasks that are shorter than a wake-up are packed; see [`packing`](crate::packing).

use brigade_base::Monotonic;

use crate::{Outbox, Scheduler, TaskData, WorkerEntry};

/// Up to this number, a worker does not get more frames while many tasks wait, because the tasks
/// are long.
pub(crate) const FEW: usize = 2;

/// A worker gets at most this many times as many frames while many more tasks wait.
const MAX_DEEPER: usize = 8;

impl<T: TaskData> Scheduler<T> {
    /// Returns a busy worker that may be sent one more task.
    #[inline]
    pub(crate) fn find_busy_worker(
        &mut self,
        now: Monotonic,
        outbox: &mut Outbox<T>,
    ) -> Option<u32> {
        let depth = self.depth();
        if depth <= 1 {
            return None;
        }
        let (queued, deepest) = (self.tasks.queued(), self.deepest());
        let twice_all = 2 * self.workers.len();
        // Each wake-up of the host displaces a worker, so links hold more while many tasks wait, up
        // to half of what there is for each worker. Enough tasks are left for the others.
        let has_room = |worker: &WorkerEntry| {
            let load = worker.load();
            // A worker without a task is a spare one, if any.
            load > 0
                && worker.may_prefetch()
                && (load < depth || (load < deepest && load * twice_all < queued))
        };
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

    /// Returns the maximum number of frames that a worker may have while many more tasks wait.
    #[inline]
    fn deepest(&self) -> usize {
        let depth = self.depth();
        if depth > FEW { (MAX_DEEPER * depth).min(self.settings.credit.into()) } else { depth }
    }

    /// Returns `true` if a worker has more brief tasks than it gets while few wait.
    pub(crate) fn has_deep_links(&self) -> bool {
        let depth = self.depth();
        self.workers.iter().any(|worker| worker.load() > depth)
    }

    /// Returns the maximum number of frames that a worker may have, including the one that it runs.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.run_times.depth().min(self.settings.credit.into())
    }
}
