//! Progress as lines without a terminal: few enough for a log.

use std::time::{Duration, Instant};

use super::Statistics;
use super::text::seconds;

/// Returns a line when another tenth of the jobs is done or enough time has passed.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    tenths: u64,
    last: Option<Instant>,
}

/// Time after which a line is due even without progress.
const PAUSE: Duration = Duration::from_secs(10);

impl Plain {
    pub(super) fn line(&mut self, statistics: &Statistics) -> Option<String> {
        let done = statistics.finished_count();
        let tenths = statistics.total().map_or(0, |total| done * 10 / total.max(1));
        let now = Instant::now();
        let last = *self.last.get_or_insert(now);
        if tenths == self.tenths && now.duration_since(last) < PAUSE {
            return None;
        }
        (self.tenths, self.last) = (tenths, Some(now));
        let of = match statistics.total() {
            Some(total) => format!("/{total} done"),
            None => format!(" done of {}+ so far", statistics.known()),
        };
        let rest =
            statistics.rest().map_or_else(String::new, |rest| format!(", {} left", seconds(rest)));
        Some(format!(
            "{done}{of}, {} failed, {} running, {} elapsed{rest}",
            statistics.failed,
            statistics.running.len(),
            seconds(statistics.elapsed()),
        ))
    }
}
