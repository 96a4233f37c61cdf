//! The result of a run in numbers.

use std::time::Duration;

use crate::event::Reason;
use crate::outcome::{Ending, Outcome};

/// The result of a run in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Jobs that exited with 0.
    pub succeeded: u64,
    /// Jobs that did not, including those that were stopped while they ran.
    pub failed: u64,
    /// Jobs that were ended because the run stopped, and jobs that were supplied but never
    /// started.
    pub stopped: u64,
    /// The reason if the run ended before all its jobs had run.
    pub halted: Option<Reason>,
    /// Duration of the run.
    pub wall: Duration,
}

impl Summary {
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        let (has_run, is_success) = (outcome.attempts > 0, outcome.ending.is_success());
        self.succeeded += u64::from(has_run && is_success);
        self.failed += u64::from(has_run && !is_success);
        self.stopped += u64::from(!has_run || outcome.ending == Ending::Stopped);
    }
}
