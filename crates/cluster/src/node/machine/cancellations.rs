//! Tasks whose outcome was recorded by somebody who wants them not to run.

use super::held::State;
use super::{Action, Machine, Token};
use crate::names::TaskKey;

impl Machine {
    pub(super) fn cancelled(&mut self, key: &TaskKey, kill: bool) {
        let Some(&last) = self.by_key.get(key) else { return };
        if self.held.get(&last).is_some_and(|held| held.is_repeated) {
            for token in self.tokens_of(key) {
                self.cancel(token, kill);
            }
        } else {
            self.cancel(last, kill);
        }
    }

    /// Lets go of one delivery of a task that has an outcome.
    fn cancel(&mut self, token: Token, kill: bool) {
        let Some(held) = self.held.get_mut(&token) else { return };
        held.is_cancelled = true;
        match held.state {
            State::Running => self.actions.push(Action::Stop { token, kill }),
            State::Waiting => self.acknowledge(token),
            _ => {}
        }
    }

    /// Returns all deliveries of a task, in their order.
    pub(super) fn tokens_of(&self, key: &TaskKey) -> Vec<Token> {
        let of_task = self.held.iter().filter(|(_, held)| held.key == *key);
        of_task.map(|(token, _)| *token).collect()
    }
}
