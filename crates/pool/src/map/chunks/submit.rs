//! Submits the chunks of a map with their deadlines.

use std::num::NonZeroU32;
use std::time::Duration;

use brigade_scheduler::Constraints;
use brigade_wire::Attempt;
use brigade_wire::codec::{self, CodecError};
use brigade_wire::shared::SharedBuf;

use super::frames::Frames;
use crate::cell::{Rare, TaskCell};
use crate::chunk::{ChunkProgress, RetriedFor};
use crate::error::{SubmitError, SubmitErrorKind, TaskError};
use crate::map::chunk::{Items, Results};
use crate::payload::Argument;

/// The maximum age of the clock by which workers check a chunk's budget: the longest tick that
/// kernels are configured with.
const LATEST_TICK: Duration = Duration::from_millis(10);

impl Frames<'_> {
    /// Returns the description of the next `count` inputs, with new task ids.
    pub(super) fn next_items(&mut self, count: u32) -> Items {
        let position = self.submitted;
        self.submitted += u64::from(count);
        let first = self.pool.shared().next_task_ids(count.into());
        Items { position, count, first, attempt: Attempt::first() }
    }

    /// Submits the inputs before the last one, which begins at the offset `before`, if they do not
    /// fit into a frame with it, or have no lists of buffers while it has one. Keeps its buffers.
    #[cold]
    pub(super) fn separate(&mut self, before: usize, limit: usize, lent: Option<Vec<SharedBuf>>) {
        let is_first_with_buffers = lent.is_some() && !self.has_buffers;
        if (self.filling.len() > limit || is_first_with_buffers) && self.filled > 0 {
            let behind = self.filling.split_off(before);
            self.submit_filled();
            self.filling = behind;
        }
        if let Some(lent) = lent {
            self.has_buffers = true;
            self.buffers.extend(lent.into_iter().map(|buffer| (self.filled, buffer)));
        }
    }

    /// Submits the inputs that were taken.
    pub(super) fn submit_filled(&mut self) {
        let count = std::mem::take(&mut self.filled);
        if count > 0 {
            let capacity = self.filling.len();
            let encoded = std::mem::replace(&mut self.filling, Vec::with_capacity(capacity));
            let items = self.next_items(count);
            self.submit(items, encoded);
        }
    }

    pub(super) fn submit(&mut self, items: Items, encoded: Vec<u8>) {
        let buffers = std::mem::take(&mut self.buffers);
        let function = match &self.function {
            Ok(function) => function.clone(),
            Err(error) => return self.fail_with(items, error.clone()),
        };
        let shape = brigade_wire::Chunk { items: items.count, budget: self.sizing.budget() };
        let (parts, bytes) = (self.sizing.parts(), encoded.len());
        let retried_for = self.options.retried_for;
        let progress =
            ChunkProgress::new(shape, items.position, parts, bytes, &self.owner, retried_for);
        let mut encoded = Argument::of(encoded, self.pool.shared().arguments());
        if self.has_buffers {
            encoded = Argument::with_buffers(encoded, buffers);
        }
        let (deadlines, mut constraints) = self.options.constraints(&self.pool.shared().config);
        if let Some(constraints) = &mut constraints {
            self.allow_for_items(constraints, &shape);
        }
        let (label, progress) = (self.options.label.clone(), Box::new(progress));
        let span = self.pool.shared().open_span(items.first, label.as_ref(), Some(items.count));
        let rare = Rare::of(label, deadlines, RetriedFor::default(), span).unwrap_or_default();
        let mut cell = TaskCell::chunk(items.first, function, encoded, progress, rare);
        let (count, retries) = (NonZeroU32::new(items.count), self.options.retries);
        match self.pool.shared().submit(&mut cell, count, retries, constraints, self.when_full) {
            Ok(()) => self.add(cell, items.position, bytes),
            Err(kind) => {
                self.refused = true;
                self.fail(items, kind);
            }
        }
    }

    /// Turns the constraints of an item into those of a chunk. The start of the current item is not
    /// known exactly, so a chunk gets extra time in which its last item may start. In a chunk of a
    /// fixed size, the items share their time.
    fn allow_for_items(&self, constraints: &mut Constraints, shape: &brigade_wire::Chunk) {
        constraints.items_share_limit = self.sizing.is_fixed();
        constraints.hard_limit = constraints.hard_limit.map(|limit| {
            if constraints.items_share_limit {
                limit.saturating_mul(shape.items)
            } else {
                limit.saturating_add(shape.budget + LATEST_TICK)
            }
        });
    }

    pub(super) fn add_need(&mut self, resource: String, amount: u64) {
        self.options.needs.add(&self.pool.shared().config.resources, resource, amount);
        if let Err(kind) = self.options.needs.check() {
            let error = SubmitError::new(kind, ()).into_task_error();
            (self.function, self.seeded) = (Err(error.clone()), Err(error));
            self.refused = true;
        }
    }

    /// Fails the next input, behind those that were taken.
    #[cold]
    pub(super) fn cannot_encode(&mut self, error: &CodecError) {
        self.submit_filled();
        let items = self.next_items(1);
        self.fail(items, SubmitErrorKind::Codec { message: codec::chain(error) });
    }

    fn fail(&mut self, items: Items, kind: SubmitErrorKind) {
        self.fail_with(items, SubmitError::new(kind, ()).into_task_error());
    }

    fn fail_with(&mut self, items: Items, error: TaskError) {
        self.unsent += 1;
        self.settled.push_back(Results::unsent(items, error));
    }
}
