//! Limits how often workers that achieve nothing are replaced: the restart intensity of a
//! supervisor in Erlang, a number within a sliding window. Starts that fail are also backed off
//! exponentially.
//!
//! The budget guards against crash loops: processes that die again and again without doing
//! anything. A worker that finished a task, or was ended by one, is not charged; the number of
//! tasks bounds such deaths. So a program whose every input crashes its worker gets to its last
//! input, while workers that die at once break the pool after a few attempts. A pool that has a
//! working worker is not broken by another one that does not start.

use std::collections::VecDeque;
use std::time::Duration;

use brigade_base::Monotonic;

/// The pool breaks after this many failed starts in a row, each made after the failure of the one
/// before.
const FAILED_STARTS: u32 = 5;

/// A window that no program outlives.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Pause after the second failed start in a row; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The restart budget; see the module's documentation.
#[derive(Debug)]
pub(crate) struct RestartBudget {
    limit: u32,
    window: Duration,
    /// Times within the window at which workers died without having done a task.
    charged: VecDeque<Monotonic>,
    failed_starts: u32,
    /// Incremented by each failed start that counts; see [`round`](Self::round).
    round: u64,
    not_before: Option<Monotonic>,
}

impl RestartBudget {
    pub(crate) fn new(limit: u32, window: Duration) -> Self {
        Self {
            limit,
            window,
            charged: VecDeque::new(),
            failed_starts: 0,
            round: 0,
            not_before: None,
        }
    }

    /// Returns the time before which no process is started.
    pub(crate) fn not_before(&self) -> Option<Monotonic> {
        self.not_before
    }

    /// Returns `true` if no pause is in effect, and forgets a pause that is over.
    pub(crate) fn may_start(&mut self, now: Monotonic) -> bool {
        self.not_before = self.not_before.filter(|time| now < *time);
        self.not_before.is_none()
    }

    pub(crate) fn worker_started(&mut self) {
        self.failed_starts = 0;
        self.not_before = None;
    }

    /// Returns the round of a start that is made now. Only one failure per round counts: the other
    /// starts were made before it was known, and say nothing about what came after.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// Charges a failed start. The error says why the budget is exhausted.
    pub(crate) fn charge_start(&mut self, now: Monotonic, round: u64) -> Result<(), String> {
        if round != self.round {
            return Ok(());
        }
        self.round += 1;
        self.failed_starts += 1;
        let doublings = self.failed_starts.saturating_sub(2).min(6);
        let pause = FIRST_PAUSE * (1 << doublings);
        self.not_before = (self.failed_starts > 1).then(|| now.saturating_add(pause));
        let charged = self.charge(now);
        if self.failed_starts >= FAILED_STARTS {
            return Err(format!("{} starts in a row failed", self.failed_starts));
        }
        charged
    }

    /// Charges a worker that died without having done a task. The error says why the budget is
    /// exhausted.
    pub(crate) fn charge(&mut self, now: Monotonic) -> Result<(), String> {
        while self.charged.front().is_some_and(|time| time.saturating_add(self.window) < now) {
            self.charged.pop_front();
        }
        self.charged.push_back(now);
        if self.charged.len() > self.limit as usize {
            // `Duration::MAX` stands for the life of the pool.
            let is_bounded = self.window < FOREVER;
            let window =
                if is_bounded { format!(" within {:?}", self.window) } else { String::new() };
            Err(format!(
                "{} workers died{window} without finishing a task (the restart budget is {})",
                self.charged.len(),
                self.limit
            ))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_without_an_end_is_not_printed() {
        let reason = |window| {
            let mut budget = RestartBudget::new(0, window);
            budget.charge(Monotonic::from_nanos(1)).unwrap_err()
        };
        assert!(reason(Duration::from_secs(10)).starts_with("1 workers died within 10s without"));
        assert!(reason(Duration::MAX).starts_with("1 workers died without"));
    }
}
