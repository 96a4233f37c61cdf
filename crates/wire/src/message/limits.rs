//! How long a task may run, as it is sent.

use std::time::Duration;

use super::words::{limit_word, split_limit_word};

/// How long a task may run, from its begin in the worker; of a chunk each item. Two words, as every task has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    pub(super) soft: u64,
    pub(super) hard: u64,
}

impl RunLimits {
    /// For ever.
    pub const NONE: Self = Self { soft: u64::MAX, hard: u64::MAX };

    /// Until the task is told to end, and until the host kills the worker. Limits of centuries are none.
    pub fn new(soft: Option<Duration>, hard: Option<Duration>) -> Self {
        Self { soft: limit_word(soft), hard: limit_word(hard) }
    }

    /// Until it is told to end.
    pub fn soft(&self) -> Option<Duration> {
        split_limit_word(self.soft)
    }

    /// Until the host kills the worker.
    pub fn hard(&self) -> Option<Duration> {
        split_limit_word(self.hard)
    }

    /// Whether there is a limit.
    pub fn are_some(&self) -> bool {
        *self != Self::NONE
    }
}
