//! What came of a run.

use std::time::Duration;

use crate::event::Reason;
use crate::outcome::{Ending, Outcome};

/// What came of a run, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Jobs that exited with 0.
    pub succeeded: u64,
    /// Jobs that did not, those that were stopped among them.
    pub failed: u64,
    /// Jobs that were ended because the run stopped, and those taken from the source that it left unstarted.
    pub stopped: u64,
    /// Why the run ended before its jobs, if it did.
    pub halted: Option<Reason>,
    /// How long it took.
    pub wall: Duration,
}

impl Summary {
    pub(crate) fn count(&mut self, outcome: &Outcome) {
        if outcome.attempts == 0 {
            self.stopped += 1;
            return;
        }
        if outcome.ending.is_success() {
            self.succeeded += 1;
        } else {
            self.failed += 1;
        }
        if outcome.ending == Ending::Stopped {
            self.stopped += 1;
        }
    }
}
