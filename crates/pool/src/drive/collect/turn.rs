//! A turn of the collector thread. As a driver of a network card does (NAPI), it asks not to be
//! rung while others look, and looks at times. For the protocol, see the parent module.

use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_wire::ring::Listener;

use super::listeners::NextTurn;
use super::patience::Patience;
use super::rings::{LockedRings, Rings};
use crate::drive::deferred::Deferred;

/// Time for which the collector thread relies on busy callers to look at the rings.
const QUIET: Duration = Duration::from_millis(1);

/// If callers have listened in turn this often since the last turn of the collector thread, it
/// relies on them although one is listening: else each would ask the workers to ring the thread,
/// and take that back, which costs more than a look of the thread per [`QUIET`].
const MANY_TURNS: u64 = 64;

/// State of the collector thread that lasts from one turn to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of outcomes that callers had collected at the last turn.
    seen: u64,
    /// The number of callers' turns that had ended at the last turn.
    seen_turns: u64,
    /// Until then, the thread relies on callers.
    until: Option<Monotonic>,
    /// Until then, workers may announce outcomes later.
    patient_until: Option<Monotonic>,
    patience: Patience,
}

impl Turn {
    /// Returns the time of the next turn, if it does not begin earlier because a worker rings.
    /// Workers do so only while no caller listens.
    pub(super) fn due(&self) -> Option<Monotonic> {
        self.until.or(self.patient_until)
    }

    /// Plans the next turn after a panic; it asks the workers to ring again.
    pub(super) fn repeat(&mut self) {
        self.until = Some(now().saturating_add(QUIET));
    }

    /// Looks at the rings unless callers do, and sets the listener until the next turn. `rung` is
    /// `true` if a worker began this turn.
    pub(super) fn look(&mut self, rings: &impl Rings, rung: bool, deferred: &mut Deferred) {
        let waited_in_vain = self.patient_until.take().is_some() && !rung;
        let mut locked = rings.lock();
        let collected_by_callers = locked.listeners().collected_by_callers;
        let callers_collect = collected_by_callers != self.seen;
        // They do not look while they sleep.
        let callers_sleep = locked.listeners().waiting() > 0 || locked.is_room_awaited();
        let callers_look = callers_collect && !callers_sleep;
        self.seen = collected_by_callers;
        let ended_turns = locked.listeners().ended_turns;
        let many_listen = ended_turns - self.seen_turns >= MANY_TURNS;
        self.seen_turns = ended_turns;
        let relied = self.until.take().is_some();
        rings.rely_on_callers(false);
        // A ring in vain is not asked for again at once.
        let mut may_ring = !(relied && rung);
        if locked.listeners().caller_listens() {
            locked.look(None, deferred);
            if many_listen && callers_look {
                self.repeat();
            } else if rung && callers_collect {
                // The caller had left with its outcome, and came back for the next one. Workers
                // that ring in between would wake this thread in vain again.
                self.be_patient(&locked);
            }
        } else if relied && callers_look && !rung {
            self.repeat();
        } else {
            rings.listen(Listener::Nobody);
            let collected = locked.look(None, deferred);
            self.patience = self.patience.after(collected, waited_in_vain);
            if callers_look {
                self.repeat();
                may_ring |= collected > 0;
            } else {
                if self.patience == Patience::Kept {
                    self.be_patient(&locked);
                }
                let is_patient = self.patient_until.is_some();
                rings.listen(if is_patient { Listener::PatientThread } else { Listener::Thread });
                locked.look(None, deferred);
            }
        }
        if self.until.is_some() && may_ring {
            rings.rely_on_callers(true);
            locked.look(None, deferred);
        }
        locked.listeners().next_turn = match (self.until, self.patient_until) {
            (Some(_), _) => NextTurn::Due,
            (None, Some(_)) => NextTurn::RungOrDue,
            (None, None) => NextTurn::Rung,
        };
    }

    /// Plans the next turn for the case that a worker announces its outcomes too late.
    fn be_patient(&mut self, locked: &impl LockedRings) {
        self.patient_until = locked.patience().map(|patience| now().saturating_add(patience));
    }
}
