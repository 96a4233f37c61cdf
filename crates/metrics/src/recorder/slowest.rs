//! The tasks that took longest.

use std::time::Duration;

use super::run::{Run, worker_text};
use crate::SlowTask;

/// The slowest tasks, at most `MAX`, longest first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slowest<const MAX: usize> {
    /// The run time of each, the time of its end, and the rest.
    tasks: Vec<(u64, u64, SlowTask)>,
    /// The run time that a task has to exceed to be among them.
    threshold: u64,
}

/// Labels are cut off at this number of bytes, so that memory is bounded.
pub(crate) const LABEL_LIMIT: usize = 100;

impl<const MAX: usize> Slowest<MAX> {
    /// Adds a task that took this long, if it is among the slowest.
    #[inline]
    pub(crate) fn add(&mut self, now: u64, nanos: u64, run: &Run<'_>) {
        if nanos > self.threshold {
            self.insert(now, nanos, run);
        }
    }

    /// Returns the longest run time that is not among them.
    pub(crate) fn longest_ignored(&self) -> u64 {
        self.threshold
    }

    #[cold]
    fn insert(&mut self, now: u64, nanos: u64, run: &Run<'_>) {
        let slow = SlowTask {
            task: run.task,
            label: cut(run.label.unwrap_or_default(), LABEL_LIMIT).to_owned(),
            worker: run.worker.map(worker_text).unwrap_or_default(),
            ..SlowTask::default()
        };
        let at = self.tasks.partition_point(|(other, ..)| *other >= nanos);
        self.tasks.insert(at, (nanos, now, slow));
        self.tasks.truncate(MAX);
        if self.tasks.len() == MAX {
            self.threshold = self.tasks.last().map_or(0, |(nanos, ..)| *nanos);
        }
    }

    pub(crate) fn list(&self, now: u64) -> Vec<SlowTask> {
        let list = self.tasks.iter().map(|(nanos, ended, slow)| SlowTask {
            run_time: Duration::from_nanos(*nanos),
            ago: Duration::from_nanos(now.saturating_sub(*ended)),
            ..slow.clone()
        });
        list.collect()
    }
}

/// Returns at most `most` bytes of the text, in whole characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
