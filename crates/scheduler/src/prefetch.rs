//! Decides how many tasks a busy worker is sent in advance.
//!
//! A prefetched task is written into the link of a busy worker, so that the worker finds it without
//! a wake-up. The number of prefetched tasks follows from the usual run time: a few hundred
//! microseconds of work hide the round trip to the host. One task is prefetched as long as the
//! round trip would be noticeable; nothing is prefetched behind long tasks.
//!
//! Tasks that are shorter than a wake-up are packed: they go to the worker that is already awake,
//! even if another one is idle, because waking that one would take longer.

use brigade_time::Monotonic;

use crate::{Outbox, Scheduler, WorkerEntry};

/// Number of short tasks that one worker gets before the next worker gets any.
const PACK: usize = 64;

impl<T> Scheduler<T> {
    /// Returns the worker that was assigned the last task if it should get short tasks even though
    /// another worker is idle.
    #[inline]
    pub(crate) fn take_awake_worker(
        &mut self,
        now: Monotonic,
        outbox: &mut Outbox<T>,
    ) -> Option<u32> {
        if !self.run_times.are_short() || self.workers.idle().is_empty() {
            return None;
        }
        let worker = self.workers.current();
        let most = PACK.min(self.settings.credit.into());
        if !worker.may_prefetch() || !(1..most).contains(&worker.load()) {
            return None;
        }
        let slot = worker.id.slot;
        self.plan_rescue(now, outbox);
        Some(slot)
    }

    /// Returns a busy worker that may be sent one more task.
    pub(crate) fn find_busy_worker(
        &mut self,
        now: Monotonic,
        outbox: &mut Outbox<T>,
    ) -> Option<u32> {
        let depth = self.depth();
        if depth <= 1 {
            return None;
        }
        let has_room = |worker: &WorkerEntry| worker.may_prefetch() && worker.load() < depth;
        let current = self.workers.current();
        let slot = if has_room(current) && !current.load().is_multiple_of(PACK) {
            current.id.slot
        } else {
            self.workers.after_current().find(|worker| has_room(worker))?.id.slot
        };
        if !self.workers.is_complete() {
            self.plan_rescue(now, outbox);
        }
        Some(slot)
    }

    /// Returns the maximum number of frames that a worker may have, including the one that it runs.
    pub(crate) fn depth(&self) -> usize {
        self.run_times.depth().min(self.settings.credit.into())
    }
}
