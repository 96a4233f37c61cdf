//! The record of the tasks of each label.

use std::collections::HashMap;

use super::run::{Run, Timing};
use super::slowest::{LABEL_LIMIT, cut};
use crate::{LabelSnapshot, Times};

/// Number of labels that have a record of their own.
const MAX: usize = 64;

#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    /// Positions in `all`.
    known: HashMap<Box<str>, usize>,
    /// In order of their first use; the last one stands for all others if there are too many.
    all: Vec<Label>,
    /// The position of the label that was used last.
    last: usize,
}

#[derive(Debug, Clone)]
struct Label {
    name: Box<str>,
    finished: u64,
    failed: u64,
    run_time: Times<u32>,
    queue_time: Times<u32>,
}

impl Labels {
    #[inline]
    pub(crate) fn add(&mut self, run: &Run<'_>) {
        if let Some(name) = run.label {
            self.find(cut(name, LABEL_LIMIT)).add(run);
        }
    }

    fn find(&mut self, name: &str) -> &mut Label {
        if self.all.get(self.last).is_none_or(|last| &*last.name != name) {
            self.last = match self.known.get(name) {
                Some(position) => *position,
                None => self.insert(name),
            };
        }
        &mut self.all[self.last]
    }

    #[cold]
    fn insert(&mut self, name: &str) -> usize {
        if self.all.len() < MAX {
            self.known.insert(name.into(), self.all.len());
            self.all.push(Label::new(name));
        } else if self.all.len() == MAX {
            self.all.push(Label::new(LabelSnapshot::OTHER));
        }
        self.all.len() - 1
    }

    pub(crate) fn list(&self) -> Vec<LabelSnapshot> {
        let list = self.all.iter().map(|label| LabelSnapshot {
            label: label.name.to_string(),
            finished: label.finished,
            failed: label.failed,
            run_time: label.run_time.distribution(),
            queue_time: label.queue_time.distribution(),
        });
        list.collect()
    }
}

impl Label {
    fn new(name: &str) -> Self {
        let (run_time, queue_time) = (Times::default(), Times::default());
        Self { name: name.into(), finished: 0, failed: 0, run_time, queue_time }
    }

    fn add(&mut self, run: &Run<'_>) {
        self.finished += u64::from(run.items);
        self.failed += u64::from(run.failed);
        let Some(Timing { weight, queue_time, .. }) = run.timing else { return };
        if let Some(time) = run.time_of_item() {
            self.run_time.record(time, weight);
        }
        if let Some(time) = queue_time {
            self.queue_time.record(time, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_labels_is_bounded() {
        let mut labels = Labels::default();
        for number in 0..1_000 {
            let label = format!("label {}", number % 100);
            labels.add(&Run { label: Some(&label), items: 1, ..Run::default() });
        }
        labels.add(&Run { items: 1, ..Run::default() });
        let list = labels.list();
        assert_eq!(list.len(), MAX + 1);
        assert_eq!((&*list[7].label, list[7].finished), ("label 7", 10));
        assert_eq!((&*list[MAX].label, list[MAX].finished), (LabelSnapshot::OTHER, 360));
    }
}
