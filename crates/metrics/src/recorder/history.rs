//! The last ten minutes, second by second.

use std::collections::VecDeque;
use std::time::Duration;

use crate::HistoryPoint;

/// Number of seconds that are kept.
const SECONDS: u64 = 600;

const SECOND: u64 = 1_000_000_000;

/// The seconds in which something happened, oldest first. Events write it; no timer does.
#[derive(Debug, Clone, Default)]
pub(crate) struct RateHistory {
    seconds: VecDeque<Second>,
    /// The last second, which is not in `seconds` yet.
    current: Second,
}

#[derive(Debug, Clone, Copy, Default)]
struct Second {
    /// Its begin, in nanoseconds.
    begin: u64,
    point: HistoryPoint,
}

impl RateHistory {
    /// Adds what happened at `now`. An event that comes late counts for the present second.
    #[inline]
    pub(crate) fn add(&mut self, now: u64, finished: u64, failed: u64, queued: u64, busy: u32) {
        if now >= self.current.begin.saturating_add(SECOND) {
            self.turn(now);
        }
        let point = &mut self.current.point;
        point.finished += finished;
        point.failed += failed;
        point.max_queued = point.max_queued.max(queued);
        point.busy = point.busy.max(busy);
    }

    /// Returns the end of the second that begins with an event at `now`.
    pub(crate) fn end_of_second(now: u64) -> u64 {
        (now - now % SECOND).saturating_add(SECOND)
    }

    #[cold]
    fn turn(&mut self, now: u64) {
        let last = std::mem::replace(
            &mut self.current,
            Second { begin: now - now % SECOND, ..Second::default() },
        );
        if last.happened() {
            self.seconds.push_back(last);
        }
        while self.seconds.front().is_some_and(|second| is_over(second, now)) {
            self.seconds.pop_front();
        }
    }

    pub(crate) fn points(&self, now: u64) -> Vec<HistoryPoint> {
        let all = self.seconds.iter().chain(Some(&self.current));
        let recent = all.filter(|second| second.happened() && !is_over(second, now));
        recent
            .map(|second| HistoryPoint {
                ago: Duration::from_nanos(now.saturating_sub(second.begin)),
                ..second.point
            })
            .collect()
    }
}

impl Second {
    fn happened(&self) -> bool {
        self.point.finished > 0 || self.point.max_queued > 0 || self.point.busy > 0
    }
}

fn is_over(second: &Second, now: u64) -> bool {
    now.saturating_sub(second.begin) > SECONDS * SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_events_leaves_ten_minutes() {
        let mut history = RateHistory::default();
        for second in 0..3600 {
            history.add(second * SECOND + 5, 3, 1, second, 2);
            history.add(second * SECOND + 7, 1, 0, 1, 1);
        }
        let points = history.points(3599 * SECOND + 8);
        assert_eq!(points.len(), 600);
        let ago = |point: &HistoryPoint| point.ago.as_secs();
        assert!(points.windows(2).all(|pair| ago(&pair[0]) == ago(&pair[1]) + 1));
        let last = points[599];
        assert_eq!((last.finished, last.failed, last.max_queued, last.busy), (4, 1, 3599, 2));
    }

    #[test]
    fn seconds_without_events_are_missing_and_old_ones_end() {
        let mut history = RateHistory::default();
        history.add(SECOND, 1, 0, 0, 1);
        history.add(9 * SECOND, 1, 0, 0, 1);
        history.add(SECOND, 1, 0, 0, 1);
        let points = history.points(10 * SECOND);
        assert_eq!(points.iter().map(|point| point.finished).collect::<Vec<_>>(), [1, 2]);
        assert!(history.points(1_000 * SECOND).is_empty());
    }
}
