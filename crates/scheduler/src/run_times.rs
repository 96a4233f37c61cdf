//! Learns the usual run time of tasks, which determines how many of them are prefetched: an
//! exponentially weighted moving average with clipped outliers.

use std::time::Duration;

/// Work that is kept in the link of a worker: several wake-ups' worth (25 to 60 µs each on a small
/// virtual machine).
const PREFETCHED_WORK: u64 = 500 * MICRO;

/// One task is prefetched behind tasks of up to this length: two wake-ups between two longer ones
/// are some thousandths of them.
const WORTH_PREFETCHING: u64 = 50_000 * MICRO;

/// Tasks up to this length are packed: they cost less than waking a worker for them.
const SHORT: u64 = 2 * MICRO;

/// Outcomes of tasks up to this length may be announced several at a time: at least three fit into
/// the work that is kept in a link.
const BRIEF: u64 = PREFETCHED_WORK / 3;

/// Longer runs are counted as this.
const MAX_RUN: u64 = 1_000_000 * MICRO;

/// A microsecond, in nanoseconds. All times here are nanoseconds in one word, because this runs for
/// each task and arithmetic with `Duration` costs several times as much.
const MICRO: u64 = 1_000;

/// Number of consecutive runs, each much longer than usual, that count as exceptions.
const EXCEPTIONS: u8 = 2;

/// The usual run time of a task.
#[derive(Debug)]
pub(crate) struct RunTimes {
    /// In nanoseconds.
    usual: u64,
    /// Number of frames that follows from `usual`.
    depth: usize,
    /// Number of consecutive runs that took much longer.
    long_runs: u8,
}

impl Default for RunTimes {
    fn default() -> Self {
        // Not known yet. Assume long tasks, so that nothing is prefetched behind a first task that
        // takes minutes.
        Self { usual: MAX_RUN, depth: depth(MAX_RUN), long_runs: 0 }
    }
}

impl RunTimes {
    /// Returns `true` if tasks are so short that waking a worker for one takes longer.
    #[inline]
    pub(crate) fn are_short(&self) -> bool {
        self.usual <= SHORT
    }

    /// Returns `true` if outcomes may be announced several at a time.
    pub(crate) fn are_brief(&self) -> bool {
        self.usual <= BRIEF
    }

    /// Returns the number of frames, including the one that it runs, that keep a worker busy.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Updates the usual run time, a moving average in which a single run counts for at most four
    /// usual ones. A worker that had to give up its core in the middle of a short task reports
    /// milliseconds, which must not end the prefetching. Several long runs in a row are no
    /// exceptions.
    #[inline]
    pub(crate) fn learn(&mut self, run_time: Duration) {
        // A worker may report any number.
        let run_time = u64::try_from(run_time.as_nanos()).unwrap_or(u64::MAX).min(MAX_RUN);
        let most = self.usual * 4 + MICRO;
        let counted = if run_time <= most {
            self.long_runs = 0;
            run_time
        } else if self.long_runs < EXCEPTIONS {
            self.long_runs += 1;
            most
        } else {
            run_time
        };
        self.set((self.usual * 7 + counted) / 8);
    }

    fn set(&mut self, usual: u64) {
        if usual != self.usual {
            *self = Self { usual, depth: depth(usual), ..*self };
        }
    }

    #[cfg(test)]
    pub(crate) fn usual(&self) -> Duration {
        Duration::from_nanos(self.usual)
    }

    #[cfg(test)]
    pub(crate) fn set_usual(&mut self, usual: Duration) {
        self.set(usual.as_nanos().try_into().unwrap_or(MAX_RUN));
    }
}

/// Returns the number of frames for this usual run time.
fn depth(usual: u64) -> usize {
    let least = if usual <= WORTH_PREFETCHING { 2 } else { 1 };
    usize::try_from(PREFETCHED_WORK / usual.max(1)).unwrap_or(usize::MAX).max(least)
}
