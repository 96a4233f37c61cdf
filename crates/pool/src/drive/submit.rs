//! Tasks on their way in, on the thread of the caller.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brigade_sys::clock;
use brigade_wire::Attempt;

use super::afterwards::Afterwards;
use super::foreign;
use super::outcome::Facts;
use super::shared::{Core, Shared, now};
use crate::awaited::{Awaited, Sleeper};
use crate::cell::TaskCell;
use crate::error::SubmitErrorKind;
use crate::machine::{Event, Now, Submission, Terms};
use crate::pool::Room;

/// Submitters look for answers once for so many tasks: a look at what another core has just written costs as much as
/// submitting a task.
const LOOK_EVERY: usize = 32;

impl Shared {
    pub(crate) fn submit(
        &self,
        task: &Arc<TaskCell>,
        attempt: Attempt,
        retries: u32,
        terms: Option<Box<Terms>>,
        room: Room,
    ) -> Result<(), SubmitErrorKind> {
        let mut core = self.open_with_room(room)?;
        let mut after = Afterwards::default();
        // Limits count from the exact time.
        let time = if terms.is_some() { now() } else { last_tick() };
        core.handle(
            time,
            Event::Submit(Submission {
                id: task.id,
                task: Arc::clone(task),
                attempt,
                retries,
                terms,
            }),
            Facts::Nothing,
            self,
            &mut after,
        );
        core.submitted = core.submitted.wrapping_add(1);
        if core.machine.backlog() % LOOK_EVERY == 1 || core.submitted.is_multiple_of(LOOK_EVERY) {
            // Before somebody must be woken for what workers have answered meanwhile.
            let collected = core.collect(self, &mut after);
            core.taken_by_callers += collected as u64;
        }
        drop(core);
        after.run(self);
        Ok(())
    }

    /// Submits a task of its own for each worker.
    pub(crate) fn broadcast(
        &self,
        mut make: impl FnMut() -> Arc<TaskCell>,
    ) -> Result<Vec<Arc<TaskCell>>, SubmitErrorKind> {
        // Each task has a copy of the argument, which may be large: none is made or freed under the lock.
        let mut tasks = Vec::new();
        let mut core = loop {
            let core = self.open_with_room(Room::Wait)?;
            let missing = core.machine.target().saturating_sub(tasks.len());
            if missing == 0 {
                break core;
            }
            drop(core);
            tasks.extend(std::iter::repeat_with(&mut make).take(missing));
        };
        let surplus = tasks.split_off(core.machine.target());
        let mut after = Afterwards::default();
        for (slot, task) in (0..).zip(&tasks) {
            let terms = task.limits.as_ref().map_or_else(Terms::default, |limits| limits.terms());
            let submission = Submission {
                id: task.id,
                task: Arc::clone(task),
                attempt: Attempt::first(),
                retries: 0,
                terms: Some(Box::new(Terms { slot: Some(slot), ..terms })),
            };
            core.handle(now(), Event::Submit(submission), Facts::Nothing, self, &mut after);
        }
        drop(core);
        drop(surplus);
        after.run(self);
        Ok(tasks)
    }

    /// The core of a pool that is open and whose queue has room.
    fn open_with_room(&self, room: Room) -> Result<MutexGuard<'_, Core>, SubmitErrorKind> {
        if self.is_forked() {
            return Err(SubmitErrorKind::Forked);
        }
        let mut core = self.lock();
        loop {
            if let Some(reason) = core.machine.broken_reason() {
                return Err(SubmitErrorKind::PoolBroken { reason: reason.to_string() });
            }
            if !core.machine.is_open() {
                return Err(SubmitErrorKind::PoolClosed);
            }
            if core.machine.has_room() {
                return Ok(core);
            }
            core = self.wait_for_room(core, room)?;
        }
    }

    fn wait_for_room<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core>,
        room: Room,
    ) -> Result<MutexGuard<'a, Core>, SubmitErrorKind> {
        let left = match room {
            Room::Now => return Err(SubmitErrorKind::Full),
            Room::Wait => None,
            Room::Until(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(SubmitErrorKind::TimedOut);
                }
                Some(left)
            }
        };
        if foreign::is_running() && self.collecting.is_some() {
            // A waker of this pool has submitted: perhaps nobody else is there to handle answers.
            drop(core);
            return Ok(self.collect_until_there_is_room(left));
        }
        core.waiting_for_room += 1;
        let mut core = match left {
            None => self.room.wait(core).unwrap_or_else(PoisonError::into_inner),
            Some(left) => {
                self.room.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0
            }
        };
        core.waiting_for_room -= 1;
        Ok(core)
    }
}

impl Shared {
    /// The core, when there may be room or the time is over.
    fn collect_until_there_is_room(&self, left: Option<Duration>) -> MutexGuard<'_, Core> {
        self.lock().waiting_for_room += 1;
        self.wait_for(&RoomOf(self), left.and_then(|left| Instant::now().checked_add(left)));
        let mut core = self.lock();
        core.waiting_for_room -= 1;
        core
    }
}

/// Room in a pool's queue, or the pool's end, waited for by one that handles answers meanwhile.
struct RoomOf<'a>(&'a Shared);

impl Awaited for RoomOf<'_> {
    fn is_awaited(&self) -> bool {
        let core = self.0.lock();
        core.machine.is_open() && !core.machine.has_room()
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        let me = std::thread::current().id();
        let mut core = self.0.lock();
        core.sleeping_for_room
            .retain(|other| !matches!(other, Sleeper::Parked(thread) if thread.id() == me));
        core.sleeping_for_room.push(sleeper);
    }

    fn wake_up(&self) {
        // Others that sleep so look again, and sleep again.
        let sleepers = std::mem::take(&mut self.0.lock().sleeping_for_room);
        for sleeper in sleepers {
            let _ = sleeper.wake();
        }
    }
}

/// The machine's clock for events that set no time: a little behind, and much cheaper.
fn last_tick() -> Now {
    clock::last_tick().since_zero()
}
