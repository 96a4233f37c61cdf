//! Tests with a canary that jobs can run at all, before any job starts.

use std::collections::HashSet;

use super::{Action, Attempt, Machine};
use crate::event::Reason;
use crate::job::Job;
use std::sync::Arc;

/// The preludes that have passed, and the state of the canary.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    passed: HashSet<Option<String>>,
    running: bool,
}

impl Canaries {
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Handles a canary that could not start yet.
    pub(super) fn put_back(&mut self) {
        self.running = false;
    }
}

impl Machine {
    /// Returns the canary that must pass before the first waiting job may start, if any.
    pub(super) fn canary_for_next(&mut self) -> Option<Attempt> {
        let job = &self.waiting.front()?.job;
        let prelude = job.prelude.as_deref();
        if prelude.is_none() && self.settings.canary.is_none()
            || self.canaries.passed.contains(&job.prelude)
        {
            return None;
        }
        // Without a canary from the user, only the prelude is tested.
        let mut canary = self.settings.canary.clone().unwrap_or_else(|| Job::new("true"));
        if let Some(prelude) = prelude {
            canary = Job::prelude_before(prelude, canary);
        }
        if canary.folder.is_none() {
            canary.folder.clone_from(&job.folder);
        }
        self.canaries.running = true;
        Some(Attempt { number: 0, job: Arc::new(canary), nth: 1, previous: None, is_canary: true })
    }

    pub(super) fn canary_ended(
        &mut self,
        prelude: Option<String>,
        passed: bool,
        out: &mut Vec<Action>,
    ) {
        self.canaries.running = false;
        if passed {
            self.canaries.passed.insert(prelude);
        } else {
            // If the run was stopped in the meantime, the stop stays the reason for its end.
            self.drain(Reason::Failed, out);
        }
    }
}
