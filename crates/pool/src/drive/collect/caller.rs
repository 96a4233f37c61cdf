//! A caller that waits for a task: the leader collects the outcomes of all tasks meanwhile, and a
//! follower sleeps. For the protocol, see the parent module.

use std::io;
use std::time::{Duration, Instant};

use brigade_sys::clock::Monotonic;
use brigade_wire::ring::Listener;

use super::glances::Glance;
use super::listeners::{Leaves, NextTurn};
use super::patience::Patience;
use super::rings::{LockedRings, Rings, Role};
use crate::drive::deferred::Deferred;
use brigade_task::backend::{Sleeper, Wait, park_for};

/// A caller that waits for a task.
pub(super) struct Caller<'a, R: Rings> {
    rings: &'a R,
    listens: bool,
    /// `true` if a caller that handed over has chosen this one, which does not listen yet.
    chosen: bool,
    patience: Patience,
    leaves: Leaves,
    /// `true` if the caller cannot sleep at the doorbell; other threads bring about what it waits
    /// for.
    parks: bool,
}

impl<'a, R: Rings> Caller<'a, R> {
    pub(super) fn new(rings: &'a R) -> Self {
        Self {
            rings,
            listens: false,
            chosen: false,
            patience: Patience::Kept,
            leaves: Leaves::Shortly,
            parks: false,
        }
    }

    /// Waits for a short time for the outcome that a future waits for, without sleeping; see
    /// `glances`.
    pub(super) fn glance(mut self, wait: &dyn Wait) -> Glance {
        let mut locked = self.rings.lock();
        let spin = locked.spin(Role::Polls);
        let glance = spin.as_ref().map_or(Glance::Skip, |_| locked.listeners().start_glancing());
        match (glance, spin) {
            (Glance::Spin, Some(spin)) => {
                self.listens = true;
                self.rings.listen(Listener::Nobody);
                drop(locked);
                let rings = self.rings;
                let look = |time| self.look(time) > 0;
                let found = rings.spin(&spin, look, || !wait.is_pending());
                if !found {
                    self.leaves = Leaves::ForLong;
                }
                self.rings.lock().listeners().glances.end(found);
            }
            (Glance::Skip, _) if locked.listeners().awaits_callers() => {
                self.leaves = Leaves::ForLong;
                self.hand_over(locked);
            }
            _ => {}
        }
        glance
    }

    pub(super) fn wait_for(&mut self, wait: &dyn Wait, deadline: Option<Instant>) {
        while wait.is_pending()
            && deadline.is_none_or(|deadline| Instant::now() < deadline)
            // A waker may have forked.
            && !self.rings.are_forked()
        {
            if self.parks {
                park_for(wait, deadline);
            } else if self.listens || self.start_listening() {
                self.collect_and_sleep(wait, deadline);
            } else if !self.arrives_shortly(wait) {
                self.sleep_until_woken(wait, deadline);
            }
        }
    }

    /// Returns `false` if another caller listens.
    fn start_listening(&mut self) -> bool {
        let mut locked = self.rings.lock();
        self.chosen = false;
        self.listens = locked.listeners().start();
        if self.listens {
            self.rings.listen(Listener::Nobody);
        }
        self.listens
    }

    /// Looks for the outcome of a short task although another caller listens: this caller is
    /// running, so it has the outcome long before it could be woken.
    fn arrives_shortly(&mut self, wait: &dyn Wait) -> bool {
        let spin = self.rings.lock().spin(Role::Waits);
        spin.is_some_and(|spin| {
            self.rings.spin(
                &spin,
                |time| {
                    self.collect(wait, Some(time));
                    false
                },
                || !wait.is_pending(),
            )
        })
    }

    fn sleep_until_woken(&mut self, wait: &dyn Wait, deadline: Option<Instant>) {
        let seat = self.rings.wake_queue().seat();
        wait.set_sleeper(Sleeper::Queued(seat.ticket()));
        let mut deferred = Deferred::default();
        let mut locked = self.rings.lock();
        let may_sleep = locked.listeners().wait(seat.parker());
        if may_sleep && !locked.listeners().caller_listens() {
            // The collector thread may rely on callers to look.
            self.rings.listen(Listener::Thread);
            locked.look(None, &mut deferred);
        }
        drop(locked);
        self.rings.run(&mut deferred);
        // The wake-up may come from the outcome or from a leaving listener, or be spurious.
        if may_sleep && wait.is_pending() {
            seat.parker().park(deadline);
        }
        let parker = seat.parker().clone();
        drop(seat);
        self.chosen = self.rings.lock().listeners().stop_waiting(&parker);
    }

    fn collect_and_sleep(&mut self, wait: &dyn Wait, deadline: Option<Instant>) {
        if self.collect(wait, None) > 0 || !self.listens || !wait.is_pending() {
            return;
        }
        let spin = self.rings.lock().spin(Role::Listens);
        if spin.is_some_and(|spin| {
            self.rings.spin(&spin, |time| self.collect(wait, Some(time)) > 0, || !wait.is_pending())
        }) {
            return;
        }
        if self.rings.lock().listeners().are_many() {
            self.hand_over(self.rings.lock());
            self.sleep_until_woken(wait, deadline);
            return;
        }
        let mut deferred = Deferred::default();
        let mut locked = self.rings.lock();
        let patience = locked.patience().filter(|_| self.patience == Patience::Kept);
        let is_patient = patience.is_some();
        self.rings.listen(if is_patient { Listener::PatientCaller } else { Listener::Caller });
        let collected = locked.look(None, &mut deferred);
        drop(locked);
        // Everything that follows from this look has to be done before sleeping.
        let slept = if collected == 0 && !deferred.has_work() {
            self.sleep_at_the_doorbell(wait, deadline, patience)
        } else {
            Ok(())
        };
        self.rings.listen(Listener::Nobody);
        self.run(&mut deferred);
        if let Err(error) = slept {
            self.parks = true;
            self.rings.give_up(&error);
        }
    }

    /// Looks for a future.
    fn look(&mut self, time: Monotonic) -> usize {
        let mut deferred = Deferred::default();
        let mut locked = self.rings.lock();
        let collected = locked.look(Some(time), &mut deferred);
        locked.listeners().count(collected);
        drop(locked);
        self.run(&mut deferred);
        collected
    }

    fn collect(&mut self, wait: &dyn Wait, time: Option<Monotonic>) -> usize {
        let mut deferred = Deferred::default();
        let mut locked = self.rings.lock();
        let collected = locked.look(time, &mut deferred);
        locked.listeners().count(collected);
        if self.listens && wait.is_over() {
            // Handing over later would take the lock once more.
            self.leave(&mut locked, &mut deferred);
        }
        drop(locked);
        self.patience = self.patience.after(collected, false);
        self.run(&mut deferred);
        collected
    }

    fn sleep_at_the_doorbell(
        &mut self,
        wait: &dyn Wait,
        deadline: Option<Instant>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        let next_look = patience.and_then(|patience| Instant::now().checked_add(patience));
        let until = next_look.into_iter().chain(deadline).min();
        wait.set_sleeper(Sleeper::AtTheDoorbell);
        let rung =
            if wait.is_pending() { self.rings.sleep_at_the_doorbell(until) } else { Ok(true) };
        wait.clear_sleeper();
        self.patience = self.patience.after(0, !rung? && patience.is_some());
        Ok(())
    }

    /// Hands over before user code runs, which may wait for other tasks or take long, and before a
    /// large value is copied.
    fn run(&mut self, deferred: &mut Deferred) {
        if self.listens && deferred.takes_long() {
            // What another look brings about runs after what is urgent in this one.
            let mut locked = self.rings.lock();
            self.leave(&mut locked, deferred);
        }
        self.rings.run(deferred);
    }

    fn hand_over(&mut self, mut locked: R::Locked<'_>) {
        let mut deferred = Deferred::default();
        self.leave(&mut locked, &mut deferred);
        drop(locked);
        self.rings.run(&mut deferred);
    }

    fn leave(&mut self, locked: &mut R::Locked<'_>, deferred: &mut Deferred) {
        self.listens = false;
        let looks_later = match locked.listeners().next_turn {
            NextTurn::Rung => false,
            NextTurn::RungOrDue => true,
            NextTurn::Due => self.leaves == Leaves::ForLong,
        };
        let is_patient = looks_later && locked.patience().is_some();
        let listener = locked.listeners().leave(is_patient, self.leaves);
        self.rings.listen(listener);
        // If nobody is rung, the collector thread looks again by itself.
        if listener != Listener::Nobody {
            locked.look(None, deferred);
        }
        locked.listeners().wake_next();
        locked.call_collector();
    }
}

/// Hands over to another caller or to the collector thread, even after a panic.
impl<R: Rings> Drop for Caller<'_, R> {
    fn drop(&mut self) {
        if self.rings.are_forked() {
            return;
        }
        if self.listens {
            self.hand_over(self.rings.lock());
        } else if self.chosen {
            // Its wait was over before it could listen.
            self.rings.lock().listeners().wake_next();
        }
    }
}
