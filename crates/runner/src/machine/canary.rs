//! Tests with a canary that jobs can run at all, before any job starts.

use super::{Attempt, Machine};
use crate::event::Reason;
use crate::job::Job;
use std::sync::Arc;

impl Machine {
    /// Returns the canary that must pass before the first waiting job may start, if any.
    pub(super) fn canary_for_next(&mut self) -> Option<Attempt> {
        let job = &self.waiting.front()?.job;
        if job.prelude.is_none() && self.settings.canary.is_none()
            || self.passed.contains(&job.prelude)
        {
            return None;
        }
        // Without a canary from the user, only the prelude is tested.
        let mut canary = self.settings.canary.clone().unwrap_or_else(|| Job::new("true"));
        if job.prelude.is_some() {
            canary.prelude.clone_from(&job.prelude);
        }
        if canary.folder.is_none() {
            canary.folder.clone_from(&job.folder);
        }
        self.is_canary_running = true;
        Some(Attempt { number: 0, job: Arc::new(canary), nth: 1, previous: None, is_canary: true })
    }

    pub(super) fn canary_ended(&mut self, prelude: Option<String>, passed: bool) {
        self.is_canary_running = false;
        if passed {
            self.passed.insert(prelude);
        } else {
            // If the run was stopped in the meantime, the stop stays the reason for its end.
            self.drain(Reason::Failed);
        }
    }
}
