//! Numbers of failures, and the last ones.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::time::Duration;

use super::run::{Run, worker_text};
use super::slowest::{LABEL_LIMIT, cut};
use crate::{Failure, FailureKind};

/// Number of failures that are kept.
const RECENT: usize = 20;

/// Texts are cut off at this number of bytes.
const TEXT_LIMIT: usize = 200;

#[derive(Debug, Clone, Default)]
pub(crate) struct Failures {
    counts: BTreeMap<FailureKind, u64>,
    /// The last ones with their times, latest last.
    recent: VecDeque<(u64, Failure)>,
}

impl Failures {
    pub(crate) fn add(
        &mut self,
        now: u64,
        kind: FailureKind,
        count: u32,
        run: &Run<'_>,
        text: &dyn fmt::Display,
    ) {
        *self.counts.entry(kind).or_default() += u64::from(count);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        let mut failure = Failure::new(run.task, kind, bounded(text));
        cut(run.label.unwrap_or_default(), LABEL_LIMIT).clone_into(&mut failure.label);
        failure.worker = run.worker.map(worker_text).unwrap_or_default();
        self.recent.push_back((now, failure));
    }

    pub(crate) fn counts(&self) -> &BTreeMap<FailureKind, u64> {
        &self.counts
    }

    /// Returns the last failures, latest first.
    pub(crate) fn recent(&self, now: u64) -> Vec<Failure> {
        let list = self.recent.iter().rev().map(|(time, failure)| Failure {
            ago: Duration::from_nanos(now.saturating_sub(*time)),
            ..failure.clone()
        });
        list.collect()
    }
}

/// Writes at most [`TEXT_LIMIT`] bytes of the text, however long it is.
fn bounded(text: &dyn fmt::Display) -> String {
    struct Bounded(String);
    impl Write for Bounded {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            let part_that_fits = cut(part, TEXT_LIMIT - self.0.len());
            self.0.push_str(part_that_fits);
            // The error ends the formatting.
            if part_that_fits.len() == part.len() { Ok(()) } else { Err(fmt::Error) }
        }
    }
    let mut bounded = Bounded(String::new());
    let _ = write!(bounded, "{text}");
    bounded.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_off_between_characters() {
        assert_eq!(bounded(&"short"), "short");
        let text = bounded(&"ä".repeat(1_000_000));
        assert_eq!(text, "ä".repeat(TEXT_LIMIT / 2));
        assert_eq!(bounded(&format!("a{text}")).len(), TEXT_LIMIT - 1);
    }

    #[test]
    fn the_last_failures_are_kept_and_all_are_counted() {
        let mut failures = Failures::default();
        for task in 0..50 {
            let run = Run { task, label: Some("x"), ..Run::default() };
            failures.add(task, FailureKind::Codec, 2, &run, &"no");
        }
        let recent = failures.recent(100);
        assert_eq!(failures.counts()[&FailureKind::Codec], 100);
        let tasks: Vec<_> = recent.iter().map(|failure| failure.task).collect();
        assert_eq!(tasks, (30..50).rev().collect::<Vec<_>>());
        assert_eq!(recent[0].ago, Duration::from_nanos(51));
    }
}
