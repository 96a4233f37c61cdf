//! The expired timers of one process, ordered by expiry and indexed by scope.
//!
//! A kept process may have up to the maximum number of timers in here, and each of its requests may
//! remove one.

use std::collections::{BTreeMap, HashMap};

use crate::event::ExpiredTimer;
use crate::scope::Scope;

#[derive(Debug, Default)]
pub(super) struct Expired {
    timers: BTreeMap<u64, ExpiredTimer>,
    /// The key in `timers`. A scope that expires again replaces its earlier entry.
    keys: HashMap<Scope, u64>,
    next: u64,
}

impl Expired {
    pub(super) fn push(&mut self, timer: ExpiredTimer) {
        if let Some(earlier) = self.keys.insert(timer.scope.clone(), self.next) {
            self.timers.remove(&earlier);
        }
        self.timers.insert(self.next, timer);
        self.next += 1;
    }

    pub(super) fn remove(&mut self, scope: &Scope) {
        if let Some(key) = self.keys.remove(scope) {
            self.timers.remove(&key);
        }
    }

    pub(super) fn clear(&mut self) {
        self.timers.clear();
        self.keys.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.timers.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.timers.is_empty()
    }

    /// Returns the earliest.
    pub(super) fn first(&self) -> Option<&ExpiredTimer> {
        self.timers.first_key_value().map(|(_, timer)| timer)
    }

    pub(super) fn to_vec(&self) -> Vec<ExpiredTimer> {
        self.timers.values().cloned().collect()
    }

    /// Returns the last `count` timers, the earliest first.
    pub(super) fn latest(&self, count: usize) -> Vec<ExpiredTimer> {
        let mut latest: Vec<_> = self.timers.values().rev().take(count).cloned().collect();
        latest.reverse();
        latest
    }
}
