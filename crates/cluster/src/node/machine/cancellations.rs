//! Tasks whose outcome was recorded by somebody who wants them not to run.
//!
//! The announcement may overtake the delivery of its task, and comes before the task is deleted
//! from the queue. So a node remembers the last ones. It examines their tasks when they come,
//! because a task of the same name may be another one, whose batch was deleted and begun anew.

use std::collections::{HashSet, VecDeque};

use super::held::State;
use super::{Action, Machine, Token};
use crate::names::TaskKey;

/// Number of tasks that are remembered.
const REMEMBERED: usize = 4096;

/// Tasks that were cancelled before they came.
#[derive(Debug, Default)]
pub(super) struct Cancellations {
    keys: HashSet<TaskKey>,
    /// In the order of their cancellations.
    order: VecDeque<TaskKey>,
}

impl Cancellations {
    fn add(&mut self, key: &TaskKey) {
        if self.keys.insert(key.clone()) {
            self.order.push_back(key.clone());
        }
        if self.order.len() > REMEMBERED
            && let Some(first) = self.order.pop_front()
        {
            self.keys.remove(&first);
        }
    }

    pub(super) fn contains(&self, key: &TaskKey) -> bool {
        self.keys.contains(key)
    }
}

impl Machine {
    pub(super) fn cancelled(&mut self, key: &TaskKey, kill: bool) {
        let Some(&last) = self.by_key.get(key) else { return self.cancellations.add(key) };
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
