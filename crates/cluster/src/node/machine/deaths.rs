//! Failed attempts: whether the task is retried, fails, or is given up.

use super::{Action, Machine, Token};
use crate::message::Incident;

impl Machine {
    /// Decides what becomes of a task whose worker died, or whose function failed. Its pause is up
    /// to the server, which delivers it only afterwards.
    pub(super) fn attempt_failed(&mut self, token: Token, incident: Incident) {
        let Some(held) = self.held.get_mut(&token) else { return };
        let has_died = matches!(incident, Incident::WorkerDied(_));
        let deaths = held.history.deaths_before(held.delivery) + 1;
        let failed = held.history.failed_attempts().saturating_add(1);
        if has_died && deaths >= held.facts.max_deaths {
            let report = held.report(&self.settings.name, incident);
            held.history.add(held.delivery, report);
            self.give_up(token, deaths);
        } else if failed > held.facts.retry.retries() {
            self.record(token, Action::RecordOutcome(token));
        } else {
            let pause = held.facts.retry.pause(failed, held.delivery.message);
            self.hand_back(token, incident, pause);
        }
    }
}
