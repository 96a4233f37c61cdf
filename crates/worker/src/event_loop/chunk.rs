//! Runs the items of a chunk.

use std::time::Duration;

use brigade_sys::clock::{self, Monotonic};
use brigade_wire::link::LinkSender;
use brigade_wire::slots::SlotTable;
use brigade_wire::{Chunk, FromWorker, Item, Outcome, Run, TaskId, items};

use super::{Answer, Call, Reporter, Runner, argument};
use crate::buffers::Lent;
use crate::error::LoopError;
use crate::sections;

/// The host learns of the outcomes of a chunk at its end, unless that takes longer than this.
/// Chunks are usually shorter, and each wake-up of the host displaces a worker.
const LONG_CHUNK: Duration = Duration::from_millis(2);

/// A chunk that has started.
pub(super) struct Items<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) chunk: Chunk,
    pub(super) began: Monotonic,
}

impl Items<'_> {
    /// Runs the items in order and sends their outcomes, until the budget is used up. Returns the
    /// outcome of the chunk, whose value is empty.
    pub(super) fn run<S: LinkSender>(
        &self,
        slots: &SlotTable,
        reporter: &mut Reporter<S>,
        runner: &mut Runner,
        lent: &mut Lent,
    ) -> Result<Answer<'static>, LoopError> {
        let Run { task, ring_index, .. } = *self.run;
        let entry = runner.find(&self.run.function);
        let Runner { arenas, calls, .. } = runner;
        let mut rest = argument(arenas.as_ref(), self.run).unwrap_or_default();
        let mut tick = clock::last_tick();
        for index in 0..self.chunk.items {
            let Some(Ok(item)) = items::take(&mut rest) else {
                let reason = format!("the chunk ends before its item {index}");
                return Ok(Some(Box::new(Outcome::ArgumentCodec(reason))));
            };
            slots.begin_item(ring_index, u64::from(index) + 1);
            let id = TaskId::new(task.get() + u64::from(index));
            let answer = match &entry {
                Ok(entry) => {
                    let call = Call { run: self.run, id, entry: *entry, argument: item };
                    calls.run::<S>(call, arenas.as_ref(), lent, None)
                }
                Err(reason) => Some(Box::new(Outcome::UnknownFunction(reason.clone()))),
            };
            sections::end_of_item();
            match answer {
                None => reporter.send_value_of_item(ring_index, index, &calls.result)?,
                Some(outcome) => {
                    let item = Item { ring_index, index, outcome: *outcome };
                    reporter.send_unannounced(&FromWorker::Item(item))?;
                }
            }
            // Reading the exact time costs more than a short item.
            if clock::last_tick() != tick {
                tick = clock::last_tick();
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
}
