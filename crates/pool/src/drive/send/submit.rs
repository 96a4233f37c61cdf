//! Submits tasks on the caller's thread.

use std::num::NonZeroU32;
use std::time::Instant;

use brigade_scheduler::{Constraints, Event, Submission};
use brigade_sys::sync::MutexGuard;

use crate::cell::TaskCell;
use crate::drive::deferred::Deferred;
use crate::drive::observer::Observer;
use crate::drive::outcome::EventData;
use crate::drive::shared::{Core, Shared};
use crate::drive::user_code;
use crate::error::{SubmitErrorKind, TaskError};
use crate::submission::Submission as Unsubmitted;
use crate::sync::current;
use crate::when_full::WhenFull;
use brigade_task::backend::{Sleeper, Wait};

/// Submitters look for outcomes once per this number of tasks. Reading what another core has just
/// written costs as much as submitting a task.
const COLLECT_EVERY: usize = 32;

impl Shared {
    pub(crate) fn submit(
        &self,
        task: &mut TaskCell,
        items: Option<NonZeroU32>,
        retries: u32,
        constraints: Option<Box<Constraints>>,
        when_full: WhenFull,
    ) -> Result<(), SubmitErrorKind> {
        match self.open_with_room(when_full) {
            Ok(core) => {
                let scheduled = task.share();
                self.accept(core, task, scheduled, items, retries, constraints);
                Ok(())
            }
            Err(kind) => {
                if let Some(span) = task.take_span() {
                    span.refuse(&kind);
                }
                Err(kind)
            }
        }
    }

    /// Submits a task to an open pool. `scheduled` is another reference to it.
    #[inline]
    pub(in crate::drive) fn accept(
        &self,
        mut core: MutexGuard<'_, Core>,
        task: &TaskCell,
        scheduled: TaskCell,
        items: Option<NonZeroU32>,
        retries: u32,
        constraints: Option<Box<Constraints>>,
    ) {
        let mut deferred = Deferred::default();
        // Deadlines count from the exact time. The last tick is slightly behind, but much cheaper.
        let is_exact = constraints.is_some() || items.is_some();
        let time = core.observers.stamp(task, is_exact);
        let submission = Submission { task: scheduled, items, retries, constraints };
        core.handle(time, Event::Submit(submission), EventData::Nothing, self, &mut deferred);
        let is_alone = core.scheduler.pending() == 1;
        self.woken.submit(is_alone);
        if core.listeners.glances.submit(is_alone) {
            task.set_may_look();
        }
        core.submitted = core.submitted.wrapping_add(1);
        if core.scheduler.backlog() % COLLECT_EVERY == 1
            || core.submitted.is_multiple_of(COLLECT_EVERY)
        {
            // Collecting now saves waking a thread for the outcomes that have arrived meanwhile.
            let collected = core.collect(None, self, &mut deferred);
            core.listeners.count(collected);
        }
        drop(core);
        deferred.run(self);
    }

    /// Stores the outcome of a task that was not submitted.
    pub(crate) fn refuse(&self, task: &TaskCell, error: TaskError) {
        let mut deferred = Deferred::default();
        deferred.complete(task.clone(), Err(error));
        deferred.run(self);
    }

    /// Submits one task for each worker, without retries.
    pub(crate) fn broadcast(
        &self,
        mut make: impl FnMut() -> Unsubmitted,
    ) -> Result<Vec<TaskCell>, SubmitErrorKind> {
        // Each task has its own copy of the argument, which may be large, so none is allocated or
        // freed under the lock.
        let mut tasks = Vec::new();
        let mut core = loop {
            let mut core = self.open_with_room(WhenFull::Wait)?;
            let missing = core.scheduler.target().saturating_sub(tasks.len());
            if missing == 0 {
                break core;
            }
            // Room is not reserved meanwhile. Another thread may use it, also if `make` panics.
            let mut deferred = Deferred::default();
            core.wake_waiters(self, &mut deferred);
            drop(core);
            deferred.run(self);
            tasks.extend(std::iter::repeat_with(&mut make).take(missing));
        };
        let surplus = tasks.split_off(core.scheduler.target());
        let mut deferred = Deferred::default();
        for (slot, Unsubmitted { cell, constraints, .. }) in (0..).zip(&mut tasks) {
            let mut constraints = constraints.take().unwrap_or_default();
            constraints.slot = Some(slot);
            let time = core.observers.stamp(cell, true);
            let (task, constraints) = (cell.clone(), Some(constraints));
            let event = Event::Submit(Submission { task, items: None, retries: 0, constraints });
            core.handle(time, event, EventData::Nothing, self, &mut deferred);
        }
        drop(core);
        drop(surplus);
        deferred.run(self);
        Ok(tasks.into_iter().map(|task| task.cell).collect())
    }

    /// Locks the core of an open pool whose queue has room.
    #[inline]
    pub(in crate::drive) fn open_with_room(
        &self,
        when_full: WhenFull,
    ) -> Result<MutexGuard<'_, Core>, SubmitErrorKind> {
        if self.is_forked() {
            return Err(SubmitErrorKind::Forked);
        }
        let core = self.lock();
        if core.scheduler.is_open() && core.scheduler.has_room() {
            return Ok(core);
        }
        self.wait_until_open(core, when_full)
    }

    fn wait_until_open<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        when_full: WhenFull,
    ) -> Result<MutexGuard<'a, Core>, SubmitErrorKind> {
        loop {
            if !core.scheduler.is_open() {
                return Err(match core.scheduler.broken_reason() {
                    Some(reason) => SubmitErrorKind::PoolBroken { reason: reason.to_string() },
                    None => SubmitErrorKind::PoolClosed,
                });
            }
            if core.scheduler.has_room() || matches!(when_full, WhenFull::Exceed) {
                return Ok(core);
            }
            core = self.wait_for_room(core, when_full)?;
        }
    }

    fn wait_for_room<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        when_full: WhenFull,
    ) -> Result<MutexGuard<'a, Core>, SubmitErrorKind> {
        let left = match when_full {
            WhenFull::Fail => return Err(SubmitErrorKind::Full),
            WhenFull::Wait | WhenFull::Exceed => None,
            WhenFull::WaitUntil(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(SubmitErrorKind::TimedOut);
                }
                Some(left)
            }
        };
        if self.collecting.is_some() {
            let is_first = core.blocked.begin_collecting();
            // While a waker of this pool submits a task, there may be no other thread to collect.
            if is_first || user_code::is_running() {
                drop(core);
                let deadline = left.and_then(|left| Instant::now().checked_add(left));
                self.wait_for(&RoomOf(self), deadline);
                if self.is_forked() {
                    // By a waker that ran here.
                    return Err(SubmitErrorKind::Forked);
                }
                core = self.lock();
                if is_first {
                    core.blocked.end_collecting();
                }
                core.call_collector(self);
                return Ok(core);
            }
        }
        core.blocked.enter();
        let mut core = match left {
            None => self.room.wait(core),
            Some(left) => self.room.wait_timeout(core, left).0,
        };
        core.blocked.leave();
        // This thread may have been the one that was to collect, and be out of time.
        core.call_collector(self);
        Ok(core)
    }
}

/// Room in the pool's queue, or the end of the pool.
struct RoomOf<'a>(&'a Shared);

impl Wait for RoomOf<'_> {
    fn is_pending(&self) -> bool {
        if self.0.is_forked() {
            return false;
        }
        let core = self.0.lock();
        core.scheduler.is_open() && !core.scheduler.has_room()
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        let me = current().id();
        let mut core = self.0.lock();
        core.sleeping_for_room.retain(|other| !other.is_parked(me));
        core.sleeping_for_room.push(sleeper);
    }

    fn clear_sleeper(&self) {
        // Other threads that wait for room look again and go back to sleep.
        let sleepers = std::mem::take(&mut self.0.lock().sleeping_for_room);
        for sleeper in sleepers {
            let _ = sleeper.wake();
        }
    }
}
