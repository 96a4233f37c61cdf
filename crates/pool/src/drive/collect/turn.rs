//! A turn of the collector thread. For the protocol, see the parent module.

use std::time::Duration;

use brigade_sys::clock::{Monotonic, now};
use brigade_wire::ring::Listener;

use super::rings::{LockedRings, Rings};
use crate::drive::deferred::Deferred;

/// Time for which the collector thread relies on busy callers to look at the rings.
const QUIET: Duration = Duration::from_millis(1);

/// State of the collector thread that lasts from one turn to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The number of outcomes that callers had collected at the last turn.
    seen: u64,
    until: Option<Monotonic>,
}

impl Turn {
    /// Returns the time of the next turn. `None` if the next turn begins when a worker rings, which
    /// workers do only while no caller listens.
    pub(super) fn due(&self) -> Option<Monotonic> {
        self.until
    }

    /// Plans the next turn after a panic; it asks the workers to ring again.
    pub(super) fn repeat(&mut self) {
        self.until = Some(now().saturating_add(QUIET));
    }

    /// Looks at the rings unless callers do, and sets the listener until the next turn.
    pub(super) fn look(&mut self, rings: &impl Rings, deferred: &mut Deferred) {
        let mut locked = rings.lock();
        let collected_by_callers = locked.listeners().collected_by_callers();
        let callers_look = collected_by_callers != self.seen;
        self.seen = collected_by_callers;
        let quiet = self.until.take().is_some() && callers_look;
        if locked.listeners().caller_listens() {
            locked.look(deferred);
        } else if quiet {
            self.repeat();
        } else {
            rings.listen(Listener::Nobody);
            locked.look(deferred);
            if callers_look {
                self.repeat();
            } else {
                rings.listen(Listener::Thread);
                locked.look(deferred);
            }
        }
        locked.listeners().set_thread_is_quiet(self.until.is_some());
    }
}
