//! Tasks that were delivered before, and so may have killed a node: each waits for a free worker,
//! is recorded as begun, and then runs at once. So the history says which nodes died of it.
//!
//! While the record is under way, the worker is reserved, and a task that comes meanwhile waits,
//! unless another worker is free.

use std::time::Duration;

use super::held::State;
use super::{Action, Machine, Token};
use crate::clock::Monotonic;
use crate::message::Incident;

impl Machine {
    /// Begins tasks that wait, in their order, as far as there are workers.
    pub(super) fn begin_waiting(&mut self, now: Monotonic) {
        while self.capacity.has_place()
            && let Some(&token) = self.waiting.first()
            && let Some(held) = self.held.get_mut(&token)
        {
            if held.is_suspect() && !self.capacity.has_free_worker() {
                return;
            }
            self.waiting.remove(&token);
            if !held.is_suspect() {
                self.run(now, token);
                continue;
            }
            held.state = State::Beginning;
            held.history.begin(held.delivery);
            let (history, revision) = (held.history.clone(), held.revision);
            self.capacity.reserve(now);
            self.actions.push(Action::RecordBegin { token, history, revision });
        }
    }

    /// Gives a task that needs no record to the pool.
    pub(super) fn run(&mut self, now: Monotonic, token: Token) {
        let Some(held) = self.held.get_mut(&token) else { return };
        held.state = State::Running;
        self.capacity.started(now);
        self.actions.push(Action::Run(token));
    }

    /// Runs a task whose history says that it begins, unless it is not wanted any more.
    pub(super) fn begun(&mut self, now: Monotonic, token: Token) {
        let Some(held) = self.held.get_mut(&token) else { return };
        if held.is_cancelled || held.is_lost || self.is_draining {
            self.capacity.release(now);
            return match (held.is_cancelled, held.is_lost) {
                (true, _) => self.acknowledge(token),
                (_, true) => self.forget(token),
                _ => self.hand_back(token, Incident::HandedBack, Duration::ZERO),
            };
        }
        held.state = State::Running;
        self.capacity.begin_reserved();
        self.actions.push(Action::Run(token));
    }
}
