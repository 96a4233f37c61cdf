//! Sends the items that a task emits while it runs.

use brigade_sys::executable::{Outlet, Refusal};
use brigade_wire::link::{ARENA_THRESHOLD, LinkSender};
use brigade_wire::slots::{Grant, SlotTable};
use brigade_wire::{FromWorker, Item, Outcome};

use super::Reporter;
use super::caller::{Store, Uncommon};
use crate::context;
use crate::error::LoopError;

/// The items of a running task, on their way to the host.
pub(super) struct Emitter<'a, S> {
    reporter: &'a mut Reporter<S>,
    slots: &'a SlotTable,
    ring_index: u16,
    /// Index of the next item.
    next: u32,
    failure: Option<LoopError>,
}

impl<'a, S: LinkSender> Emitter<'a, S> {
    pub(super) fn new(
        reporter: &'a mut Reporter<S>,
        slots: &'a SlotTable,
        ring_index: u16,
    ) -> Self {
        Self { reporter, slots, ring_index, next: 0, failure: None }
    }

    /// Returns the error that keeps this worker from sending anything, if there was one.
    pub(super) fn finish(self) -> Result<(), LoopError> {
        self.failure.map_or(Ok(()), Err)
    }

    fn send(&mut self, outcome: Outcome<'_>) -> Result<(), Refusal> {
        let item = Item { ring_index: self.ring_index, index: self.next, outcome };
        self.next += 1;
        self.reporter.send(&FromWorker::Item(item)).map_err(|error| {
            self.failure = Some(error);
            Refusal::Closed
        })
    }
}

/// An [`Emitter`] that stores large items in the worker's arena, if it has one.
pub(super) struct ArenaOutlet<'run, 'a, S> {
    pub(super) emitter: &'run mut Emitter<'a, S>,
    pub(super) store: &'run Store<'run>,
}

impl<S: LinkSender> Outlet for ArenaOutlet<'_, '_, S> {
    fn wait(&mut self) -> Result<(), Refusal> {
        self.store.origin.end_copy();
        let Emitter { slots, ring_index, next, .. } = *self.emitter;
        if next == u32::MAX {
            return Err(Refusal::Closed);
        }
        match slots.wait_for_grant(ring_index, next.into(), context::soft_end()) {
            Some(Grant::UpTo(_)) => Ok(()),
            Some(Grant::Closed) => Err(Refusal::Closed),
            None => Err(Refusal::Expired),
        }
    }

    fn send(&mut self, parts: &[&[u8]], has_segments: bool) -> Result<(), Refusal> {
        self.store.origin.end_copy();
        if has_segments {
            let item = parts.concat();
            return self.emitter.send(self.store.outcome(Uncommon::Segmented(None), &item));
        }
        let is_large = parts.iter().map(|part| part.len()).sum::<usize>() >= ARENA_THRESHOLD;
        let stored = if is_large { self.store.put(parts) } else { None };
        match (stored, parts) {
            (Some(location), _) => self.emitter.send(Outcome::InArena(location)),
            (None, [part]) => self.emitter.send(Outcome::Value(part)),
            (None, parts) => self.emitter.send(Outcome::Value(&parts.concat())),
        }
    }
}
