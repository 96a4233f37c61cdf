//! Trying out whether jobs can run at all, before any does.

use std::collections::HashSet;

use super::{Attempt, Machine};
use crate::event::Reason;
use crate::job::Job;
use std::sync::Arc;

/// Which preludes were tried.
#[derive(Debug, Default)]
pub(super) struct Canaries {
    passed: HashSet<Option<String>>,
    running: bool,
}

impl Canaries {
    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// The canary was not started after all.
    pub(super) fn put_back(&mut self) {
        self.running = false;
    }
}

impl Machine {
    /// The canary that must pass before the first waiting job may start.
    pub(super) fn canary_for_next(&mut self) -> Option<Attempt> {
        let job = &self.waiting.front()?.job;
        let prelude = job.prelude.as_deref();
        if prelude.is_none() && self.settings.canary.is_none()
            || self.canaries.passed.contains(&job.prelude)
        {
            return None;
        }
        // Without a canary of the user's, the prelude itself is what is tried.
        let mut canary = self.settings.canary.clone().unwrap_or_else(|| Job::new("true"));
        if let Some(prelude) = prelude {
            canary = Job::prelude_before(prelude, canary);
        }
        if canary.folder.is_none() {
            canary.folder.clone_from(&job.folder);
        }
        self.canaries.running = true;
        Some(Attempt { number: 0, job: Arc::new(canary), nth: 1, before: None, is_canary: true })
    }

    pub(super) fn canary_ended(&mut self, attempt: &Attempt, passed: bool) {
        self.canaries.running = false;
        if passed {
            self.canaries.passed.insert(attempt.job.prelude.clone());
        } else {
            // If the run was stopped meanwhile, that is why it ends.
            self.drain(Reason::Failed);
        }
    }
}
