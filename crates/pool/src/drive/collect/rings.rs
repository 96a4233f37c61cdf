//! A pool's rings, as the threads that collect outcomes see them.
//!
//! The protocol of these threads is written against the traits [`Rings`] and [`LockedRings`], so
//! that a model can run it in every interleaving with rings and a bell of its own.

use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brigade_scheduler::Links;
use brigade_sys::clock::{Monotonic, now};
use brigade_sys::sync::MutexGuard;
use brigade_wire::ring::{LONG_PATIENCE, Listener, PATIENCE, Watch};

use super::collecting::Collecting;
use super::listeners::Listeners;
use crate::drive::deferred::Deferred;
use crate::drive::shared::{Core, Shared};
use crate::wake_queue::WakeQueue;

/// The part of a waiting caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drive) enum Role {
    /// It collects the outcomes for all callers.
    Listens,
    /// It waits while another caller listens.
    Waits,
    /// It polls a future.
    Polls,
}

/// A caller that spins looks this often although no ring has anything new: messages may wait for
/// room in a ring.
const LOOK_EVERY: u32 = 16;

/// A caller's spin.
pub(super) struct Spin {
    pub(super) limit: Duration,
    /// Its end is recorded in [`Collecting::spins`].
    pub(super) is_recorded: bool,
    /// Watched without the core's lock, for which others would have to wait.
    pub(super) rings: Arc<[Watch]>,
}

/// The rings of all workers, and the doorbell that the workers ring.
pub(super) trait Rings {
    type Locked<'a>: LockedRings
    where
        Self: 'a;

    fn lock(&self) -> Self::Locked<'_>;
    /// Returns the queue of callers to wake.
    fn wake_queue(&self) -> &Arc<WakeQueue>;
    /// Sets the listener to ring from now on. Look at all rings after this call, unless it is
    /// [`Listener::Nobody`].
    fn listen(&self, listener: Listener);
    /// Sets whether workers that are about to sleep ring the collector thread while nobody listens.
    /// Look at all rings after this call, unless `relies` is `false`.
    fn rely_on_callers(&self, relies: bool);
    /// Sleeps until the listening caller is rung, and takes the ring so that it wakes nobody later.
    /// Returns `false` if the deadline passes first.
    fn sleep_at_the_doorbell(&self, deadline: Option<Instant>) -> io::Result<bool>;
    /// Calls `look` with the time whenever there may be something to see, until it or `is_over`
    /// returns `true`, or for the time of `spin`. Returns `false` if neither has.
    fn spin(
        &self,
        spin: &Spin,
        look: impl FnMut(Monotonic) -> bool,
        is_over: impl Fn() -> bool,
    ) -> bool;
    /// Carries out what follows from a look.
    fn run(&self, deferred: &mut Deferred);
    /// Returns `true` in a fork of the process.
    fn are_forked(&self) -> bool;
    /// Breaks the pool: a caller cannot wait for the doorbell.
    fn give_up(&self, error: &dyn Display);
}

/// The rings under the core's lock.
pub(super) trait LockedRings {
    fn listeners(&mut self) -> &mut Listeners;
    /// Handles all outcomes that have arrived and returns their number. `time` is the time, if it
    /// was just read.
    fn look(&mut self, time: Option<Monotonic>, deferred: &mut Deferred) -> usize;
    /// Returns the spin of a caller, if it may spin.
    fn spin(&mut self, role: Role) -> Option<Spin>;
    /// Returns the time for which a listener may be patient, if a worker has several tasks, all of
    /// which are expected to be brief.
    fn patience(&self) -> Option<Duration>;
    /// Lets a caller that waits for room collect if nobody else does.
    fn call_collector(&mut self);
    /// Returns `true` if callers wait for room in the queue. Busy ones are among them, which do not
    /// look meanwhile.
    fn is_room_awaited(&self) -> bool;
}

/// The rings of a pool.
pub(super) struct PoolRings<'a> {
    pub(super) shared: &'a Shared,
    pub(super) collecting: &'a Collecting,
}

pub(super) struct LockedCore<'a> {
    core: MutexGuard<'a, Core>,
    shared: &'a Shared,
}

impl Rings for PoolRings<'_> {
    type Locked<'a>
        = LockedCore<'a>
    where
        Self: 'a;

    fn lock(&self) -> LockedCore<'_> {
        LockedCore { core: self.shared.lock(), shared: self.shared }
    }

    fn wake_queue(&self) -> &Arc<WakeQueue> {
        &self.collecting.wake_queue
    }

    fn listen(&self, listener: Listener) {
        self.collecting.doorbell.listen(listener);
    }

    fn rely_on_callers(&self, relies: bool) {
        self.collecting.doorbell.rely_on_callers(relies);
    }

    fn sleep_at_the_doorbell(&self, deadline: Option<Instant>) -> io::Result<bool> {
        let left = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            now().saturating_add(left)
        });
        self.collecting.doorbell.caller().wait(left)
    }

    fn spin(
        &self,
        spin: &Spin,
        mut look: impl FnMut(Monotonic) -> bool,
        is_over: impl Fn() -> bool,
    ) -> bool {
        let record = |found| {
            if spin.is_recorded {
                self.collecting.spins.end(found);
            }
            found
        };
        let mut time = now();
        let end = time.saturating_add(spin.limit);
        let mut rounds = 0_u32;
        // Reading the time takes about as long as a pause, and nothing once there is something to
        // see.
        while time < end {
            rounds = rounds.wrapping_add(1);
            // Twice, because reading the time takes longer than both looks.
            let has_news = || spin.rings.iter().any(Watch::has_more);
            if (has_news() || has_news() || rounds.is_multiple_of(LOOK_EVERY)) && look(time)
                || is_over()
            {
                return record(true);
            }
            time = now();
        }
        record(false)
    }

    fn run(&self, deferred: &mut Deferred) {
        deferred.run(self.shared);
    }

    fn are_forked(&self) -> bool {
        self.shared.is_forked()
    }

    fn give_up(&self, error: &dyn Display) {
        self.shared.give_up("wait for outcomes", error);
    }
}

impl LockedRings for LockedCore<'_> {
    fn listeners(&mut self) -> &mut Listeners {
        &mut self.core.listeners
    }

    fn look(&mut self, time: Option<Monotonic>, deferred: &mut Deferred) -> usize {
        self.core.collect(time, self.shared, deferred)
    }

    fn spin(&mut self, role: Role) -> Option<Spin> {
        let collecting = self.shared.collecting.as_ref()?;
        let limit = self.core.spin_limit(role, self.shared, &collecting.doorbell)?;
        let is_recorded = role == Role::Listens;
        if is_recorded && !collecting.spins.begin() {
            return None;
        }
        Some(Spin { limit, is_recorded, rings: Arc::clone(&self.core.watched) })
    }

    fn patience(&self) -> Option<Duration> {
        match self.core.scheduler.links() {
            Links::Empty => None,
            Links::Filled => Some(PATIENCE),
            Links::Deep => Some(LONG_PATIENCE),
        }
    }

    fn call_collector(&mut self) {
        self.core.call_collector(self.shared);
    }

    fn is_room_awaited(&self) -> bool {
        self.core.is_room_awaited()
    }
}
