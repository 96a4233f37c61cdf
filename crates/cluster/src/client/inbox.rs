//! The outcomes of a map's chunks, in the order of arrival.

use std::collections::VecDeque;
use std::time::Duration;

use brigade_sys::sync::{Condvar, Mutex};
use brigade_task::TaskError;

use crate::clock::{Monotonic, now};
use crate::message::Items;

/// The outcomes of the items of a chunk and their run time, or the failure of all of them.
pub(super) type ChunkOutcome = Result<(Items, Duration), TaskError>;

/// The chunks that have outcomes and were not taken by the map.
#[derive(Default)]
pub(super) struct Inbox {
    /// Nothing that panics runs under this lock.
    arrived: Mutex<VecDeque<(u64, ChunkOutcome)>>,
    changed: Condvar,
}

impl Inbox {
    /// Adds the outcome of the chunk with the given index.
    pub(super) fn put(&self, index: u64, outcome: ChunkOutcome) {
        self.arrived.lock().push_back((index, outcome));
        self.changed.notify_one();
    }

    /// Takes an outcome, if there is one.
    pub(super) fn try_take(&self) -> Option<(u64, ChunkOutcome)> {
        self.arrived.lock().pop_front()
    }

    /// Takes an outcome. Blocks until there is one, or the time is over.
    pub(super) fn take(&self, until: Option<Monotonic>) -> Option<(u64, ChunkOutcome)> {
        let limit = until.map_or(Duration::MAX, |until| until.saturating_since(now()));
        let arrived = self.arrived.lock();
        let (mut arrived, _) =
            self.changed.wait_timeout_while(arrived, limit, |arrived| arrived.is_empty());
        arrived.pop_front()
    }
}

brigade_sys::debug_fields!(impl Inbox { |it| arrived: it.arrived.lock().len() });
