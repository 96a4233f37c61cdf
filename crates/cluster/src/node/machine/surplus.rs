//! Tasks that wait in the node for too long, because those before them take longer than those that
//! the capacity was learned from. They are returned, so that other nodes run them.

use std::time::Duration;

use super::held::State;
use super::{Action, Machine, Token};
use crate::clock::Monotonic;
use crate::message::Incident;

/// Time that a task may wait for a worker: many times the work of a backlog, so that a node whose
/// machine is busy for a moment returns nothing.
const PATIENCE: Duration = Duration::from_millis(250);

/// The next look at the tasks that wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Review {
    pub(super) at: Monotonic,
    /// The last task that was held when the review was planned. It has waited for the time between.
    last: Token,
}

impl Machine {
    /// Returns tasks that wait for long, at the time of a review, and plans the next one.
    pub(super) fn review_backlog(&mut self, now: Monotonic) {
        let has_backlog = self.capacity.has_backlog() || !self.waiting.is_empty();
        match self.review {
            Some(review) if now < review.at && has_backlog => return,
            Some(review) if has_backlog && !self.is_draining => {
                self.return_surplus(now, review.last);
            }
            _ => {}
        }
        let last = self.held.last_key_value().filter(|_| has_backlog);
        self.review = last.map(|(last, _)| Review { at: now + PATIENCE, last: *last });
    }

    /// Returns what is more than the capacity, the last tasks first, if one of those up to `last`
    /// still waits.
    fn return_surplus(&mut self, now: Monotonic, last: Token) {
        let is_begun = |state| matches!(state, State::Running | State::Beginning);
        let begun = self.held.iter().filter(|(_, held)| is_begun(held.state));
        // In the order in which they run.
        let queued: Vec<Token> =
            begun.map(|(token, _)| *token).chain(self.waiting.iter().copied()).collect();
        let workers = self.settings.workers as usize;
        if queued.iter().skip(workers).all(|token| *token > last) {
            return;
        }
        self.capacity.learn(now);
        let surplus = queued.len().saturating_sub(self.capacity.tasks() as usize);
        if surplus > 0 {
            tracing::debug!(
                surplus,
                "returning tasks: those before them take longer than expected"
            );
        }
        for token in queued.into_iter().rev().take(surplus) {
            if self.waiting.remove(&token) {
                self.hand_back(token, Incident::HandedBack, Duration::ZERO);
            } else {
                // Returned if it has not begun.
                self.actions.push(Action::Stop { token, kill: false });
            }
        }
    }
}
