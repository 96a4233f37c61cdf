//! The settings of a run that the machine needs.

use std::num::NonZeroUsize;
use std::time::Duration;

use brigade_base::Retry;

use crate::halt::Halt;
use crate::job::Job;
use crate::limit::Limit;

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Maximum number of attempts that run at once.
    pub(crate) slots: NonZeroUsize,
    /// The pauses between attempts, and the number of attempts for jobs that do not set their own.
    pub(crate) retry: Retry,
    /// `true` if an attempt that failed within its limit is the last.
    pub(crate) retries_only_timeouts: bool,
    /// Time limit of an attempt for jobs that do not set their own.
    pub(crate) limit: Option<Limit>,
    pub(crate) halt: Option<Halt>,
    /// Minimum time between two starts.
    pub(crate) delay: Duration,
    pub(crate) canary: Option<Job>,
    pub(crate) canary_limit: Duration,
    /// Time between SIGTERM and SIGKILL for an attempt over its limit.
    pub(crate) kill_grace: Duration,
    /// Grace period between SIGINT and SIGTERM when the run is stopped.
    pub(crate) stop_grace: Duration,
    pub(crate) tick: Option<Duration>,
    /// `true` if attempts run on a cluster. They wait there before they begin, so their limits are
    /// kept there too.
    pub(crate) is_remote: bool,
}
