//! The progress of a pool's life: running, broken, or a phase of its shutdown.
//!
//! A shutdown gets stronger step by step, but it is not an `Escalation` of `brigade_base`: its
//! times are promises to callers. Several requests are merged into the earliest of each time, and a
//! phase that begins late does not move the times after it.

use std::sync::Arc;
use std::time::Duration;

use brigade_base::Monotonic;
use serde::{Deserialize, Serialize};

use crate::TaskEnd;

/// Time until a drain first looks for stopped workers; it doubles each time.
const FIRST_INSPECTION: Duration = Duration::from_millis(250);

/// The longest interval between two such checks.
const LAST_INSPECTION: Duration = Duration::from_secs(30);

/// The way a pool ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shutdown {
    /// Runs all accepted tasks, then stops the workers.
    Drain,
    /// Cancels tasks that have not started and lets running tasks finish.
    CancelPending,
    /// Cancels tasks that have not started and sends SIGTERM to workers that run a task.
    Terminate,
    /// Cancels tasks that have not started and kills all workers with SIGKILL.
    Kill,
}

/// The progress of the pool's shutdown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Running,
    Draining {
        mode: Shutdown,
        escalate_at: Option<Monotonic>,
        inspect_at: Monotonic,
        interval: Duration,
    },
    Terminating {
        kill_at: Monotonic,
    },
    Killing,
    Ended,
}

impl Phase {
    pub(crate) fn is_terminating(self) -> bool {
        matches!(self, Self::Terminating { .. } | Self::Killing)
    }

    /// Returns `true` if a task that returns from a worker is cancelled instead of run again.
    pub(crate) fn cancels_pending(self) -> bool {
        self.mode().is_some_and(|mode| mode >= Shutdown::CancelPending)
    }

    /// Returns the strongest mode that was requested so far.
    pub(crate) fn mode(self) -> Option<Shutdown> {
        match self {
            Self::Running => None,
            Self::Draining { mode, .. } => Some(mode),
            Self::Terminating { .. } => Some(Shutdown::Terminate),
            Self::Killing | Self::Ended => Some(Shutdown::Kill),
        }
    }
}

/// Report of a shutdown, from the first call to the end of the last worker. Each item of a map
/// counts as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Number of tasks that a worker finished during the shutdown, with a value or with an error of
    /// their own.
    pub finished: u64,
    /// Number of tasks that were cancelled.
    pub cancelled: u64,
    /// Number of tasks that failed because their worker died on its own during the shutdown.
    pub failed: u64,
    /// Number of tasks that were running when the pool killed their worker.
    pub killed: u64,
    /// Number of workers that were asked to exit.
    pub workers_stopped: u64,
    /// Number of workers that had to be killed.
    pub workers_killed: u64,
    /// Time from the first shutdown call until the pool had ended.
    pub elapsed: Duration,
}

/// The progress of a pool's life.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    phase: Phase,
    report: ShutdownReport,
    broken: Option<Arc<str>>,
    /// `true` if no worker is kept until there is work.
    quiescent: bool,
}

impl Lifecycle {
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns `true` if no shutdown has begun.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    pub(crate) fn broken_reason(&self) -> Option<Arc<str>> {
        self.broken.clone()
    }

    /// Returns `true` if the pool is neither shut down nor broken.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_running() && !self.is_broken()
    }

    /// Returns the end of a task that is submitted now, if it is refused.
    #[inline]
    pub(crate) fn refusal(&self) -> Option<TaskEnd> {
        if self.is_broken() {
            Some(TaskEnd::Broken)
        } else if !self.is_running() {
            Some(TaskEnd::Closed)
        } else {
            None
        }
    }

    /// Returns `true` if the pool starts processes at all.
    pub(crate) fn may_have_workers(&self) -> bool {
        !self.is_broken() && matches!(self.phase, Phase::Running | Phase::Draining { .. })
    }

    /// Returns `true` if no worker is kept until there is work.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.quiescent
    }

    pub(crate) fn set_quiescent(&mut self, quiescent: bool) {
        self.quiescent = quiescent;
    }

    /// Breaks the pool. Returns `false` if it was broken before, or has ended.
    pub(crate) fn break_down(&mut self, reason: Arc<str>) -> bool {
        let breaks = !self.is_broken() && !self.has_ended();
        if breaks {
            self.broken = Some(reason);
        }
        breaks
    }

    /// Ends the pool.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Ended;
    }

    /// Enters a stronger mode. It never delays an end that an earlier request set.
    pub(crate) fn enter(
        &mut self,
        now: Monotonic,
        mode: Shutdown,
        deadline: Option<Monotonic>,
        grace: Duration,
    ) {
        let promised = match self.phase {
            Phase::Draining { escalate_at, .. } => escalate_at,
            _ => None,
        };
        self.phase = match mode {
            Shutdown::Drain | Shutdown::CancelPending => Phase::Draining {
                mode,
                escalate_at: promised.into_iter().chain(deadline).min(),
                inspect_at: now.saturating_add(FIRST_INSPECTION),
                interval: FIRST_INSPECTION,
            },
            Shutdown::Terminate => {
                let kill_at = deadline.unwrap_or(now.saturating_add(grace));
                Phase::Terminating {
                    kill_at: promised
                        .map_or(kill_at, |time| kill_at.min(time.saturating_add(grace))),
                }
            }
            Shutdown::Kill => Phase::Killing,
        };
    }

    /// Applies a request that is no stronger than an earlier one. It can only bring the end
    /// forward.
    pub(crate) fn bring_forward(
        &mut self,
        now: Monotonic,
        mode: Shutdown,
        deadline: Option<Monotonic>,
        grace: Duration,
    ) {
        match &mut self.phase {
            Phase::Draining { escalate_at, .. } => {
                *escalate_at = escalate_at.iter().copied().chain(deadline).min();
            }
            Phase::Terminating { kill_at } => {
                let wanted = match mode {
                    Shutdown::Terminate => Some(deadline.unwrap_or(now.saturating_add(grace))),
                    _ => deadline.map(|deadline| deadline.saturating_add(grace)),
                };
                *kill_at = wanted.map_or(*kill_at, |wanted| wanted.min(*kill_at));
            }
            Phase::Running | Phase::Killing | Phase::Ended => {}
        }
    }

    /// Resets the interval of checks for stopped workers, after a worker started or died.
    pub(crate) fn inspect_soon(&mut self, now: Monotonic) {
        if let Phase::Draining { inspect_at, interval, .. } = &mut self.phase {
            *interval = FIRST_INSPECTION;
            *inspect_at = now.saturating_add(FIRST_INSPECTION).min(*inspect_at);
        }
    }

    /// Plans the next check for stopped workers. Returns `true` if there are such checks.
    pub(crate) fn inspect_later(&mut self, now: Monotonic) -> bool {
        let Phase::Draining { inspect_at, interval, .. } = &mut self.phase else { return false };
        *interval = (*interval * 2).min(LAST_INSPECTION);
        *inspect_at = now.saturating_add(*interval);
        true
    }

    /// Returns the report without the counts of tasks.
    pub(crate) fn report(&self) -> ShutdownReport {
        self.report
    }

    /// Returns the counts, for an event that belongs to the shutdown in any phase.
    pub(crate) fn report_mut(&mut self) -> &mut ShutdownReport {
        &mut self.report
    }

    /// Counts a worker that was killed, if the shutdown has begun.
    pub(crate) fn count_killed_worker(&mut self) {
        self.report.workers_killed += u64::from(!self.is_running());
    }
}
