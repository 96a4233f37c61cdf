//! The record of which thread listens.

use brigade_wire::ring::Listener;

use super::glances::{Glance, Glances};
use crate::sync::Parker;

/// The begin of the next turn of the collector thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NextTurn {
    /// A worker rings.
    #[default]
    Rung,
    /// A worker rings, or else a time that is set. So workers may ring later.
    RungOrDue,
    /// A time that is set, without being rung.
    Due,
}

/// The time until a caller that leaves is expected to come back, if others keep coming, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    Shortly,
    /// It polls a future that has to wait, so its thread may sleep.
    ForLong,
}

/// The callers that listen or may take over, and the state of the collector thread. Kept behind the
/// core's lock; for the protocol, see the parent module.
#[derive(Debug, Default)]
pub(in crate::drive) struct Listeners {
    /// The collector thread sleeps for this number of waiting callers, or more.
    many: usize,
    /// `true` from the moment a caller starts to look until it hands over.
    caller_listens: bool,
    /// The begin of the next turn of the collector thread.
    pub(super) next_turn: NextTurn,
    /// `true` while the collector thread runs user code, which may take long.
    thread_is_away: bool,
    /// Callers that sleep and may take over.
    waiting: Vec<Parker>,
    /// Number of outcomes that callers have collected.
    pub(super) collected_by_callers: u64,
    /// Number of callers' turns to listen that have ended.
    pub(super) ended_turns: u64,
    pub(in crate::drive) glances: Glances,
}

impl Listeners {
    /// `cores` is the number of cores of the host.
    pub(in crate::drive) fn new(cores: usize) -> Self {
        Self { many: cores.max(1), ..Self::default() }
    }

    /// Returns `true` if a caller listens.
    pub(super) fn caller_listens(&self) -> bool {
        self.caller_listens
    }

    /// Makes the current thread the listening caller. Returns `false` if another caller listens.
    pub(super) fn start(&mut self) -> bool {
        !std::mem::replace(&mut self.caller_listens, true)
    }

    /// Adds the current thread, which sleeps in the given way, to those that may take over. Returns
    /// `false` if it has to take over at once.
    pub(super) fn wait(&mut self, parker: &Parker) -> bool {
        let may_wait = self.caller_listens || self.are_many();
        if may_wait {
            self.waiting.push(parker.clone());
        }
        may_wait
    }

    /// Returns `true` if none of the waiting callers listens while it sleeps.
    pub(super) fn are_many(&self) -> bool {
        self.waiting.len() >= self.many && !self.thread_is_away
    }

    /// Records whether the collector thread runs user code. Callers do without it meanwhile.
    pub(in crate::drive) fn set_thread_is_away(&mut self, is_away: bool) {
        self.thread_is_away = is_away;
        if is_away {
            self.wake_next();
        }
    }

    /// Returns `true` if the collector thread runs user code, and no caller listens or is to.
    #[inline]
    pub(in crate::drive) fn nobody_collects(&self) -> bool {
        self.thread_is_away && !self.caller_listens && self.waiting.is_empty()
    }

    /// Returns `true` if workers ring nobody while no caller listens.
    pub(super) fn awaits_callers(&self) -> bool {
        self.next_turn == NextTurn::Due && !self.caller_listens && !self.are_many()
    }

    /// Makes the current thread, which polls a future, the listening caller if it is to spin.
    pub(super) fn start_glancing(&mut self) -> Glance {
        if self.caller_listens {
            return Glance::Skip;
        }
        let glance = self.glances.begin();
        self.caller_listens = glance == Glance::Spin;
        glance
    }

    /// Removes the current thread from those that may take over. Returns `true` if a caller that
    /// handed over has chosen it: then it starts to listen, or chooses the next one.
    pub(super) fn stop_waiting(&mut self, parker: &Parker) -> bool {
        let (me, before) = (parker.thread(), self.waiting.len());
        self.waiting.retain(|other| other.thread() != me);
        self.waiting.len() == before
    }

    /// Ends the listening caller's turn. Returns the listener to ring until the next caller starts:
    /// that may have its outcome already and leave, so it is the collector thread. `is_patient` is
    /// `true` if workers may announce outcomes to it later.
    pub(super) fn leave(&mut self, is_patient: bool, leaves: Leaves) -> Listener {
        self.caller_listens = false;
        self.ended_turns += 1;
        if self.awaits_callers() && leaves == Leaves::Shortly {
            Listener::Nobody
        } else if is_patient {
            Listener::PatientThread
        } else {
            Listener::Thread
        }
    }

    /// Wakes a caller to take over, if no other caller listens.
    pub(super) fn wake_next(&mut self) {
        if self.caller_listens || self.are_many() {
            return;
        }
        if let Some(next) = self.waiting.pop() {
            next.unpark();
        }
    }

    /// Returns the number of callers that may take over.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Counts outcomes that a caller has collected.
    pub(in crate::drive) fn count(&mut self, collected: usize) {
        self.collected_by_callers += collected as u64;
    }
}
