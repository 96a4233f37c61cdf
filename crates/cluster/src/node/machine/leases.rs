//! The leases of the tasks that are held.

use super::held::{Held, State};
use super::{Action, Machine, Token};
use crate::clock::Monotonic;

impl Machine {
    /// Extends the leases, and lets those go that were not extended in time: another node has the
    /// tasks by now. What runs continues, since its outcome may still be the first.
    pub(super) fn extend_leases(&mut self, now: Monotonic) {
        let lease = self.settings.lease;
        self.next_extension = now + lease / 3;
        for (token, held) in &mut self.held {
            let age = now.saturating_since(held.extended);
            if held.is_overdue(now, lease) && !held.is_lost {
                held.is_lost = true;
                if held.state == State::Running {
                    self.actions.push(Action::Stop { token: *token, kill: false });
                }
            } else if age >= lease / 4 && self.is_up && !held.is_lost {
                held.extended = now;
                self.actions.push(Action::Extend(*token));
            }
        }
        // A lost task that does not run yet is somebody else's.
        let is_idle = |state| matches!(state, State::Examining | State::Waiting);
        let lost = |held: &Held| held.is_lost && is_idle(held.state);
        let tokens: Vec<Token> =
            self.held.iter().filter(|(_, held)| lost(held)).map(|(token, _)| *token).collect();
        for token in tokens {
            self.forget(token);
        }
    }
}
