//! The publishes without an answer: which they are, and when each is sent again. Pure: reads no
//! clock and sends nothing.

use std::collections::{BTreeSet, VecDeque};

use super::{ANSWER_TIMEOUT, Publication};
use crate::clock::Monotonic;

/// Publishes without an answer, by number.
#[derive(Debug)]
pub(super) struct Outstanding<T> {
    /// The number of the first entry.
    first: u64,
    /// `None` has its answer already.
    entries: VecDeque<Option<Entry<T>>>,
    /// Number of entries without an answer.
    len: usize,
    /// The times at which they are sent again.
    due: BTreeSet<(Monotonic, u64)>,
}

/// A publish.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) tag: T,
    pub(super) publication: Publication,
    due: Monotonic,
    /// `true` if it was sent more than once.
    pub(super) is_retried: bool,
}

impl<T> Default for Outstanding<T> {
    fn default() -> Self {
        Self { first: 0, entries: VecDeque::new(), len: 0, due: BTreeSet::new() }
    }
}

impl<T> Outstanding<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a publish that is sent now, and returns its number.
    pub(super) fn add(&mut self, tag: T, publication: Publication, now: Monotonic) -> u64 {
        let number = self.first + self.entries.len() as u64;
        let due = now + ANSWER_TIMEOUT;
        self.entries.push_back(Some(Entry { tag, publication, due, is_retried: false }));
        self.due.insert((due, number));
        self.len += 1;
        number
    }

    /// Removes a publish that has its answer. Returns `None` if it had its answer before.
    pub(super) fn remove(&mut self, number: u64) -> Option<Entry<T>> {
        let index = self.index(number)?;
        let entry = self.entries.get_mut(index)?.take()?;
        self.due.remove(&(entry.due, number));
        self.len -= 1;
        while let Some(None) = self.entries.front() {
            self.entries.pop_front();
            self.first += 1;
        }
        Some(entry)
    }

    /// Returns the tag of a publish without an answer.
    pub(super) fn tag(&self, number: u64) -> Option<&T> {
        let entry = self.entries.get(self.index(number)?)?.as_ref();
        entry.map(|entry| &entry.tag)
    }

    /// Returns the numbers of the publishes without an answer that `is_meant` chooses.
    pub(super) fn numbers(&self, is_meant: impl Fn(&T, &Publication) -> bool) -> Vec<u64> {
        let entries = (self.first..).zip(&self.entries);
        let is_meant = |entry: &Entry<T>| is_meant(&entry.tag, &entry.publication);
        let chosen = entries.filter(|(_, entry)| entry.as_ref().is_some_and(is_meant));
        chosen.map(|(number, _)| number).collect()
    }

    /// Sends a publish again at `due` rather than when its time is over.
    pub(super) fn put_off(&mut self, number: u64, due: Monotonic) {
        let Some(entry) = self.entry(number) else { return };
        let before = std::mem::replace(&mut entry.due, due);
        self.due.remove(&(before, number));
        self.due.insert((due, number));
    }

    /// Sends everything again now.
    pub(super) fn make_all_due(&mut self, now: Monotonic) {
        let numbers: Vec<u64> = self.due.iter().map(|(_, number)| *number).collect();
        for number in numbers {
            self.put_off(number, now);
        }
    }

    /// Returns the time at which the next publish is sent again.
    pub(super) fn next_deadline(&self) -> Option<Monotonic> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns a publish that is to be sent again now.
    pub(super) fn take_due(&mut self, now: Monotonic) -> Option<(u64, Publication)> {
        let number = self.due.first().filter(|(due, _)| *due <= now)?.1;
        self.put_off(number, now + ANSWER_TIMEOUT);
        let entry = self.entry(number)?;
        entry.is_retried = true;
        Some((number, entry.publication.clone()))
    }

    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.first)?).ok()
    }

    fn entry(&mut self, number: u64) -> Option<&mut Entry<T>> {
        let index = self.index(number)?;
        self.entries.get_mut(index)?.as_mut()
    }
}
