//! The time of the model, and what happens next.
//!
//! Threads that run share the cores evenly: with twice as many threads as cores, all take twice as
//! long. So events are ordered by the work until then, and the time between two of them is that
//! work times the pace of all threads. The time until a woken thread runs is stretched as well.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The clock, with the events to come. Times are in nanoseconds.
#[derive(Debug)]
pub(super) struct Clock<E> {
    cores: f64,
    /// The work that a thread that runs all the time has done since the begin.
    work: f64,
    /// The time since the begin.
    pub(super) time: f64,
    /// Threads that run or want to.
    pub(super) running: f64,
    /// The bits of positive numbers are ordered as these are. Events of the same time happen in the
    /// order in which they were planned.
    events: BinaryHeap<Reverse<(u64, u64, E)>>,
    planned: u64,
}

impl<E: Ord> Clock<E> {
    pub(super) fn new(cores: u32, running: u32) -> Self {
        let (work, time, events) = (0.0, 0.0, BinaryHeap::new());
        Self { cores: cores.into(), work, time, running: running.into(), events, planned: 0 }
    }

    /// Plans an event after that much work.
    pub(super) fn after(&mut self, work: f64, event: E) {
        self.planned += 1;
        self.events.push(Reverse(((self.work + work).to_bits(), self.planned, event)));
    }

    /// Goes on to the next event, and returns it with the time that has passed.
    pub(super) fn next(&mut self) -> Option<(f64, E)> {
        let Reverse((at, _, event)) = self.events.pop()?;
        let at = f64::from_bits(at);
        let passed = (at - self.work) * (self.running / self.cores).max(1.0);
        self.work = at;
        self.time += passed;
        Some((passed, event))
    }
}
