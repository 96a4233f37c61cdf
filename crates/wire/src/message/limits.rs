//! The wire form of a task's deadlines.

use std::time::Duration;

use super::words::{limit_word, split_limit_word};

/// The limits of a task's run time, measured from its start in the worker; for a chunk, of each
/// item. The worker only tells them to its task: the scheduler enforces the hard one. Kept as two
/// words, because every task has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    pub(super) soft: u64,
    pub(super) hard: u64,
}

impl RunLimits {
    /// No limits.
    pub const NONE: Self = Self { soft: u64::MAX, hard: u64::MAX };

    /// Creates limits: `soft` until the task is asked to stop, `hard` until the host kills the
    /// worker. Limits of several centuries count as no limit.
    pub fn new(soft: Option<Duration>, hard: Option<Duration>) -> Self {
        Self { soft: limit_word(soft), hard: limit_word(hard) }
    }

    /// Returns the time until the task is asked to stop.
    pub fn soft(&self) -> Option<Duration> {
        split_limit_word(self.soft)
    }

    /// Returns the time until the host kills the worker.
    pub fn hard(&self) -> Option<Duration> {
        split_limit_word(self.hard)
    }

    /// Returns `true` if there is a limit.
    pub fn are_some(&self) -> bool {
        *self != Self::NONE
    }
}
