//! Histories that two nodes replace at once (optimistic concurrency): the stream takes one of them.
//! The other node reads it, and decides again.

use super::held::State;
use super::{Action, Machine, Token};
use crate::clock::Monotonic;
use crate::message::{History, Incident};

impl Machine {
    /// Lets a history be read again that somebody else has replaced.
    pub(super) fn outdated(&mut self, token: Token) {
        let is_recording = |state| matches!(state, State::Beginning | State::Returning { .. });
        if self.held.get(&token).is_some_and(|held| is_recording(held.state)) {
            self.actions.push(Action::Examine(token));
        }
    }

    /// Decides by another history what becomes of a task that begins or is returned.
    pub(super) fn decide_again(
        &mut self,
        now: Monotonic,
        token: Token,
        is_done: bool,
        (history, revision): (History, u64),
    ) {
        let lease = self.settings.lease;
        let Some(held) = self.held.get_mut(&token) else { return };
        let (state, report) = (held.state, held.report.take());
        let is_past = history.is_past(held.delivery);
        let is_lost = is_past || held.is_overdue(now, lease);
        // The answer to an earlier attempt of this node was lost.
        let is_ours = is_past && report.as_ref().is_some_and(|own| history.reports.contains(own));
        (held.history, held.revision) = (history, revision);
        let is_over = is_done || held.is_cancelled;
        if state == State::Beginning {
            self.capacity.release(now);
        }
        match (state, report) {
            _ if is_over => self.acknowledge(token),
            _ if is_ours => self.recorded(now, token),
            _ if is_lost => self.forget(token),
            (State::Returning { pause }, Some(report)) => match report.incident {
                Incident::WorkerDied(_) | Incident::Failed(_) => {
                    self.attempt_failed(token, report.incident);
                }
                incident => self.hand_back(token, incident, pause),
            },
            _ => self.decide(now, token),
        }
    }
}
