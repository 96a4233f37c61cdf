//! What a run is told once.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::halt::Halt;
use crate::job::Job;
use crate::limit::Limit;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// How many attempts may run at once.
    pub(crate) slots: NonZeroUsize,
    /// How many more attempts a job gets that does not say itself.
    pub(crate) retries: u32,
    /// How long an attempt may take whose job does not say itself.
    pub(crate) limit: Option<Limit>,
    pub(crate) halt: Option<Halt>,
    /// The least time between two starts.
    pub(crate) delay: Duration,
    pub(crate) canary: Option<Job>,
    pub(crate) canary_limit: Duration,
    /// From SIGTERM to SIGKILL, for an attempt that is over its limit.
    pub(crate) kill_grace: Duration,
    /// From SIGINT to SIGTERM, when the run is stopped.
    pub(crate) stop_grace: Duration,
    pub(crate) tick: Option<Duration>,
}
