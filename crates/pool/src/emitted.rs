//! The items that a task emits while it runs, from their arrival until they are taken.
//!
//! An attempt may emit as many items beyond those that were taken as the window holds. The host
//! counts that here, and grants it to the worker in the table of task states. An item without a
//! grant, or out of order, breaks the protocol. So the number of items that nobody takes is
//! bounded, whatever the worker does.
//!
//! An attempt that follows another begins with its first item. The items that the earlier ones had
//! emitted are skipped, so each index is delivered once.
//!
//! The grant is written only while the attempt is assigned, because its entry in the table belongs
//! to another task afterwards.

use std::collections::VecDeque;
use std::sync::Arc;

use brigade_sys::clock;
use brigade_sys::sync::Mutex;
use brigade_task::backend::CompletionQueue;
use brigade_wire::slots::{Grant, SlotTable};
use brigade_wire::{Attempt, WorkerId};

use crate::payload::Value;
use crate::run_record::Run;

/// The queue of somebody who waits for items, with the task's token in it.
type Completions = (Arc<CompletionQueue>, u64);

/// The items of one task.
#[derive(Debug)]
pub(crate) struct Emitted {
    /// Number of items that may have been granted and not taken.
    window: u64,
    /// Nothing that panics runs under this lock, and no other lock is taken under it.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Index of the next item of the current attempt.
    next: u64,
    /// Number of items that were kept, of all attempts.
    kept: u64,
    taken: u64,
    items: VecDeque<(Value, Run)>,
    /// `true` if the task is to emit nothing more.
    stopped: bool,
    /// `true` if nobody takes items any more.
    discarded: bool,
    assignment: Option<Assignment>,
    completions: Option<Completions>,
}

/// The current attempt, and its entry in the worker's table.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    pub(crate) worker: WorkerId,
    pub(crate) attempt: Attempt,
    pub(crate) table: Arc<SlotTable>,
    pub(crate) ring_index: u16,
}

/// An item that was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Counted from 0.
    pub(crate) index: u64,
    pub(crate) value: Value,
    pub(crate) run: Run,
}

impl Emitted {
    /// Creates the record of a task that may have `window` items that were not taken.
    pub(crate) fn new(window: usize) -> Self {
        Self { window: window.max(1) as u64, state: Mutex::default() }
    }

    /// Adds `token` to `completions` whenever an item has arrived.
    pub(crate) fn watch(&self, completions: &Arc<CompletionQueue>, token: u64) {
        self.state.lock().completions = Some((Arc::clone(completions), token));
    }

    /// Begins an attempt, before it is sent. A pool that is shutting down grants nothing.
    pub(crate) fn begin(&self, assignment: Assignment, is_open: bool) {
        let mut state = self.state.lock();
        state.next = 0;
        state.stopped |= !is_open;
        if let Some(dead) = &state.assignment {
            // With workers that are threads, it may wait for a grant.
            dead.table.change_grant(dead.ring_index, Grant::Closed);
        }
        assignment.table.set_grant(assignment.ring_index, self.grant(&state));
        state.assignment = Some(assignment);
    }

    /// Records that the attempt has ended or was revoked.
    pub(crate) fn end(&self) {
        self.state.lock().assignment = None;
    }

    /// Keeps the next item of the attempt, unless an earlier attempt has emitted it. Returns the
    /// queue to notify of it, or the breach of the protocol.
    pub(crate) fn add(
        &self,
        index: u32,
        value: Value,
    ) -> Result<Option<Completions>, &'static str> {
        let index = u64::from(index);
        let mut state = self.state.lock();
        if index != state.next {
            return Err("out of order");
        }
        if index >= state.taken + self.window {
            return Err("that was not granted");
        }
        state.next += 1;
        if index < state.kept || state.discarded {
            return Ok(None);
        }
        let run = state.assignment.as_ref().map(Assignment::run).unwrap_or_default();
        state.items.push_back((value, run));
        state.kept += 1;
        Ok(state.completions.clone())
    }

    /// Takes the first item, and grants another.
    pub(crate) fn take(&self) -> Option<Taken> {
        let mut state = self.state.lock();
        let (value, run) = state.items.pop_front()?;
        let index = state.taken;
        state.taken += 1;
        self.publish(&state);
        Some(Taken { index, value, run })
    }

    pub(crate) fn has_some(&self) -> bool {
        !self.state.lock().items.is_empty()
    }

    /// Returns the number of items that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.state.lock().taken
    }

    /// Ends the emission: a task that waits, or tries to emit another item, gets an error.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        self.publish(&state);
    }

    /// Ends the emission and drops all items, those included that are still under way.
    pub(crate) fn discard(&self) {
        let mut state = self.state.lock();
        (state.stopped, state.discarded) = (true, true);
        let items = std::mem::take(&mut state.items);
        self.publish(&state);
        drop(state);
        // Freeing them may take long.
        drop(items);
    }

    fn grant(&self, state: &State) -> Grant {
        if state.stopped { Grant::Closed } else { Grant::UpTo(state.taken + self.window) }
    }

    /// Tells the worker what it may emit now.
    fn publish(&self, state: &State) {
        if let Some(Assignment { table, ring_index, .. }) = &state.assignment {
            table.change_grant(*ring_index, self.grant(state));
        }
    }
}

impl Assignment {
    /// Returns the run that this attempt has had so far.
    fn run(&self) -> Run {
        let since = self.table.running_since(self.ring_index);
        let time = since.map(|since| clock::now().saturating_since(since));
        Run::so_far(self.worker, self.attempt, time)
    }
}

#[cfg(test)]
mod tests {
    use brigade_sys::segment::Segment;

    use super::*;

    fn watched(window: usize) -> Emitted {
        let emitted = Emitted::new(window);
        emitted.watch(&Arc::default(), 1);
        emitted
    }

    fn assignment() -> Assignment {
        let segment = Segment::create("test", SlotTable::words(1)).expect("memory");
        let table = Arc::new(SlotTable::new(segment, 1));
        let worker = WorkerId { slot: 0, generation: 1 };
        Assignment { worker, attempt: Attempt::first(), table, ring_index: 0 }
    }

    fn value(number: u8) -> Value {
        Value::Inline(vec![number].into())
    }

    fn add(emitted: &Emitted, index: u32) -> Result<bool, &'static str> {
        let number = u8::try_from(index).expect("few");
        emitted.add(index, value(number)).map(|completions| completions.is_some())
    }

    fn take(emitted: &Emitted) -> Option<(u64, u8)> {
        emitted.take().map(|taken| match taken.value {
            Value::Inline(bytes) => (taken.index, bytes[0]),
            other => panic!("{other:?}"),
        })
    }

    /// The answer of a worker that does not wait.
    fn granted(assignment: &Assignment, index: u64) -> Option<Grant> {
        assignment.table.wait_for_grant(0, index, Some(clock::now()))
    }

    #[test]
    fn an_item_that_is_taken_grants_another() {
        let (emitted, assignment) = (watched(2), assignment());
        emitted.begin(assignment.clone(), true);
        assert_eq!(granted(&assignment, 1), Some(Grant::UpTo(2)));
        assert_eq!((add(&emitted, 0), add(&emitted, 1)), (Ok(true), Ok(true)));
        assert_eq!(granted(&assignment, 2), None);
        assert!(add(&emitted, 2).is_err(), "a worker that does not wait is caught");
        assert_eq!(take(&emitted), Some((0, 0)));
        assert_eq!(granted(&assignment, 2), Some(Grant::UpTo(3)));
        assert!(add(&emitted, 3).is_err(), "an item is missing");
        assert_eq!(add(&emitted, 2), Ok(true));
        assert_eq!(
            (take(&emitted), take(&emitted), take(&emitted)),
            (Some((1, 1)), Some((2, 2)), None)
        );
    }

    #[test]
    fn the_next_attempt_skips_what_was_kept() {
        let (emitted, first, second) = (watched(2), assignment(), assignment());
        emitted.begin(first, true);
        assert_eq!((add(&emitted, 0), add(&emitted, 1)), (Ok(true), Ok(true)));
        assert_eq!(take(&emitted), Some((0, 0)));
        emitted.end();
        emitted.begin(second.clone(), true);
        assert_eq!(granted(&second, 2), Some(Grant::UpTo(3)));
        assert_eq!((add(&emitted, 0), add(&emitted, 1)), (Ok(false), Ok(false)));
        assert_eq!(add(&emitted, 2), Ok(true));
        assert_eq!(
            (take(&emitted), take(&emitted), take(&emitted)),
            (Some((1, 1)), Some((2, 2)), None)
        );
    }

    #[test]
    fn a_task_that_is_stopped_gets_no_grant_and_its_items_stay() {
        let (emitted, assignment) = (watched(2), assignment());
        emitted.begin(assignment.clone(), true);
        assert_eq!(add(&emitted, 0), Ok(true));
        emitted.stop();
        assert_eq!(granted(&assignment, 1), Some(Grant::Closed));
        // It was under way.
        assert_eq!(add(&emitted, 1), Ok(true));
        assert_eq!(take(&emitted), Some((0, 0)));
        assert_eq!(granted(&assignment, 1), Some(Grant::Closed));
        emitted.discard();
        assert_eq!(take(&emitted), None);
        assert_eq!(add(&emitted, 2), Ok(false));
        emitted.begin(assignment.clone(), true);
        assert_eq!(granted(&assignment, 0), Some(Grant::Closed), "nor does the next attempt");
    }

    #[test]
    fn the_entry_of_an_attempt_that_has_ended_is_left_alone() {
        let (emitted, assignment) = (watched(1), assignment());
        emitted.begin(assignment.clone(), true);
        assert_eq!(add(&emitted, 0), Ok(true));
        emitted.end();
        assignment.table.set_grant(0, Grant::UpTo(7));
        assert_eq!(take(&emitted), Some((0, 0)));
        emitted.discard();
        assert_eq!(granted(&assignment, 0), Some(Grant::UpTo(7)));
    }
}
