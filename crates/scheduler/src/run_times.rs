//! Learns the usual run time of tasks, which determines how many of them are prefetched.

use std::time::Duration;

/// Work that is kept in the link of a worker: several wake-ups' worth (25 to 60 µs each on a small
/// virtual machine).
const PREFETCHED_WORK: Duration = Duration::from_micros(500);

/// One task is prefetched behind tasks of up to this length: two wake-ups between two tasks would
/// be a percent of ten milliseconds.
const WORTH_PREFETCHING: Duration = Duration::from_millis(50);

/// Tasks up to this length are packed: they cost less than waking a worker for them.
const SHORT: Duration = Duration::from_micros(2);

/// Longer runs are counted as this.
const LONGEST_RUN: Duration = Duration::from_secs(1);

/// Number of consecutive runs, each much longer than usual, that count as exceptions.
const EXCEPTIONS: u8 = 2;

/// The usual run time of a task.
#[derive(Debug)]
pub(crate) struct RunTimes {
    usual: Duration,
    /// Number of consecutive runs that took much longer.
    long_runs: u8,
}

impl Default for RunTimes {
    fn default() -> Self {
        // Not known yet. Assume long tasks, so that nothing is prefetched behind a first task that
        // takes minutes.
        Self { usual: Duration::from_secs(1), long_runs: 0 }
    }
}

impl RunTimes {
    /// Returns `true` if tasks are so short that waking a worker for one takes longer.
    #[inline]
    pub(crate) fn are_short(&self) -> bool {
        self.usual <= SHORT
    }

    /// Returns the number of frames, including the one that it runs, that keep a worker busy.
    pub(crate) fn depth(&self) -> usize {
        let fits = PREFETCHED_WORK.as_nanos() / self.usual.as_nanos().max(1);
        let least = if self.usual <= WORTH_PREFETCHING { 2 } else { 1 };
        usize::try_from(fits).unwrap_or(usize::MAX).max(least)
    }

    /// Updates the usual run time, a moving average in which a single run counts for at most four
    /// usual ones. A worker that had to give up its core in the middle of a short task reports
    /// milliseconds, which must not end the prefetching. Several long runs in a row are no
    /// exceptions.
    pub(crate) fn learn(&mut self, run_time: Duration) {
        // A worker may report any number.
        let run_time = run_time.min(LONGEST_RUN);
        let most = self.usual * 4 + Duration::from_micros(1);
        let counted = if run_time <= most {
            self.long_runs = 0;
            run_time
        } else if self.long_runs < EXCEPTIONS {
            self.long_runs += 1;
            most
        } else {
            run_time
        };
        self.usual = (self.usual * 7 + counted) / 8;
    }

    #[cfg(test)]
    pub(crate) fn usual(&self) -> Duration {
        self.usual
    }

    #[cfg(test)]
    pub(crate) fn set_usual(&mut self, usual: Duration) {
        self.usual = usual;
    }
}
