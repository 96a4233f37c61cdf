//! Deaths of workers: whether the task is retried, fails, or is given up.

use std::time::Duration;

use super::{Action, Machine, Token, report};
use crate::message::Incident;

impl Machine {
    /// Decides what becomes of a task whose worker died.
    pub(super) fn worker_died(&mut self, token: Token, incident: Incident) {
        let Some(held) = self.held.get_mut(&token) else { return };
        let deaths = held.history.deaths_before(held.delivery) + 1;
        let worker_deaths = held.history.worker_deaths + 1;
        if deaths >= held.facts.max_deaths {
            held.history.add(held.delivery, report(&self.settings.name, held, incident));
            self.give_up(token, deaths);
        } else if worker_deaths > held.facts.retries.into() {
            self.record(token, Action::RecordOutcome(token));
        } else {
            self.hand_back(token, incident, Duration::ZERO);
        }
    }
}
