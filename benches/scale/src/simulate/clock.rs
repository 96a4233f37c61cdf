//! The time of the model, and what happens next.
//!
//! Threads that run share the cores evenly. So there is one *pace* for all of them: with twice as
//! many threads as cores, all take twice as long. Events are ordered by the work until then, and
//! the time that passes between two events is that work times the pace. Time until a sleeping
//! thread runs counts as work, too.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The clock, with the events to come.
#[derive(Debug)]
pub(super) struct Clock<E> {
    cores: f64,
    /// The work that a thread that runs all the time has done since the begin, in nanoseconds.
    work: f64,
    /// The time since the begin, in nanoseconds.
    pub(super) time: f64,
    /// Threads that run or want to.
    pub(super) running: f64,
    events: BinaryHeap<Entry<E>>,
    sequence: u64,
}

impl<E> Clock<E> {
    pub(super) fn new(cores: u32, running: u32) -> Self {
        Self {
            cores: cores.into(),
            work: 0.0,
            time: 0.0,
            running: running.into(),
            events: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Plans an event after that much work.
    pub(super) fn after(&mut self, work: f64, event: E) {
        self.sequence += 1;
        self.events.push(Entry { at: self.work + work, sequence: self.sequence, event });
    }

    /// Goes on to the next event, and returns it with the time that has passed.
    pub(super) fn next(&mut self) -> Option<(f64, E)> {
        let Entry { at, event, .. } = self.events.pop()?;
        let pace = (self.running / self.cores).max(1.0);
        let passed = (at - self.work) * pace;
        self.work = at;
        self.time += passed;
        Some((passed, event))
    }
}

/// An event to come. Those of the same time happen in the order in which they were planned.
#[derive(Debug)]
struct Entry<E> {
    at: f64,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (f64, u64) {
        (self.at, self.sequence)
    }
}

impl<E> Ord for Entry<E> {
    /// The earliest is the greatest, because heaps yield that first.
    fn cmp(&self, other: &Self) -> Ordering {
        let ((at, sequence), (of_other, its)) = (self.key(), other.key());
        of_other.total_cmp(&at).then(its.cmp(&sequence))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}
