//! Runs the items of a chunk.

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic, Ticks};
use brigade_wire::link::LinkSender;
use brigade_wire::slots::{SlotTable, slot_tag};
use brigade_wire::{Chunk, FromWorker, Item, Outcome, Run, TaskId, items};

use super::caller::{Answer, FunctionCaller, Uncommon};
use super::{Reporter, TaskRunner, argument};
use crate::buffers::Lent;
use crate::error::LoopError;
use crate::sections;

/// The host learns of the outcomes of a chunk at its end, unless that takes longer than this.
/// Chunks are usually shorter, and each wake-up of the host displaces a worker.
const LONG_CHUNK: Duration = Duration::from_millis(4);

/// A chunk that has started.
pub(super) struct Items<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) chunk: Chunk,
    pub(super) began: Monotonic,
}

impl Items<'_> {
    /// Runs the items in order and sends their outcomes, until the budget is used up. Returns the
    /// outcome of the chunk, whose value is empty unless its argument is malformed.
    pub(super) fn run<S: LinkSender>(
        &self,
        slots: &SlotTable,
        reporter: &mut Reporter<S>,
        runner: &mut TaskRunner,
        lent: &mut Lent,
    ) -> Result<Answer, LoopError> {
        let Run { task, ring_index, .. } = *self.run;
        let entry = match runner.find(&self.run.function) {
            Ok(entry) => entry,
            Err(reason) => return self.fail(&reason, slots, reporter, runner),
        };
        let TaskRunner { arenas, calls, .. } = runner;
        let mut rest = argument(arenas.as_ref(), self.run).unwrap_or_default();
        let store = calls.store(arenas.as_ref());
        let mut put = |parts: &[&[u8]]| store.put_value(parts);
        let mut caller = FunctionCaller::new(self.run, calls, &store, slots, &mut put, None);
        let begun = slots.item_count(ring_index);
        let mut ticks = Ticks::new();
        for index in 0..self.chunk.items {
            let Some(Ok(item)) = items::take(&mut rest) else {
                let reason = format!("the chunk ends before its item {index}");
                return Ok(Some(Uncommon::boxed(Outcome::ArgumentCodec(reason))));
            };
            begun.set(u64::from(index) + 1);
            let id = TaskId::new(task.get() + u64::from(index));
            let answer = caller.call(entry, id, item, lent);
            sections::end_of_item();
            match answer {
                None => reporter.send_value_of_item(ring_index, index, caller.value())?,
                Some(uncommon) => {
                    let outcome = store.outcome(*uncommon, caller.value());
                    let item = Item { ring_index, index, outcome };
                    reporter.send_unannounced(&FromWorker::Item(item))?;
                    // It has left if it has panicked.
                    slots.enter(ring_index, slot_tag(task, self.run.attempt));
                }
            }
            // Reading the exact time costs more than a short item.
            if ticks.has_ticked() {
                let elapsed = clock::now().saturating_since(self.began);
                if elapsed >= self.chunk.budget {
                    break;
                }
                if elapsed >= LONG_CHUNK {
                    reporter.announce()?;
                }
            }
        }
        calls.result.clear();
        Ok(None)
    }

    /// Answers all items, because none can run.
    #[cold]
    fn fail<S: LinkSender>(
        &self,
        reason: &str,
        slots: &SlotTable,
        reporter: &mut Reporter<S>,
        runner: &mut TaskRunner,
    ) -> Result<Answer, LoopError> {
        let ring_index = self.run.ring_index;
        for index in 0..self.chunk.items {
            slots.item_count(ring_index).set(u64::from(index) + 1);
            let outcome = Outcome::UnknownFunction(reason.to_owned());
            reporter.send_unannounced(&FromWorker::Item(Item { ring_index, index, outcome }))?;
        }
        runner.calls.result.clear();
        Ok(None)
    }
}
