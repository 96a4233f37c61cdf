//! The expired timers of one worker, in the order in which they have expired, and by scope.
//!
//! A worker that is kept may have as many as it may have timers, and each of its requests may forgive one.

use std::collections::{BTreeMap, HashMap};

use crate::event::ExpiredTimer;
use crate::scope::Scope;

#[derive(Debug, Default)]
pub(super) struct Expired {
    timers: BTreeMap<u64, ExpiredTimer>,
    /// A scope that expires again takes the place of the one before.
    places: HashMap<Scope, u64>,
    next: u64,
}

impl Expired {
    pub(super) fn push(&mut self, timer: ExpiredTimer) {
        if let Some(before) = self.places.insert(timer.scope.clone(), self.next) {
            self.timers.remove(&before);
        }
        self.timers.insert(self.next, timer);
        self.next += 1;
    }

    pub(super) fn remove(&mut self, scope: &Scope) {
        if let Some(place) = self.places.remove(scope) {
            self.timers.remove(&place);
        }
    }

    pub(super) fn clear(&mut self) {
        self.timers.clear();
        self.places.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<&ExpiredTimer> {
        self.timers.first_key_value().map(|(_, timer)| timer)
    }

    pub(super) fn to_vec(&self) -> Vec<ExpiredTimer> {
        self.timers.values().cloned().collect()
    }

    /// The last ones, the earliest first.
    pub(super) fn latest(&self, count: usize) -> Vec<ExpiredTimer> {
        let mut latest: Vec<_> = self.timers.values().rev().take(count).cloned().collect();
        latest.reverse();
        latest
    }
}
