//! Asks workers where their tasks are.

use std::sync::Arc;

use brigade_crash::Stack;
use brigade_scheduler::TaskRef;
use brigade_sys::clock::Monotonic;
use brigade_wire::TaskId;
use brigade_wire::slots::slot_tag;

use crate::drive::shared::{Core, Shared};
use crate::drive::starts::worker_slot::WorkerSlot;

impl Shared {
    /// Asks where the task is that a worker runs; see [`WorkerProcess::sample`].
    ///
    /// [`WorkerProcess::sample`]: brigade_supervisor::WorkerProcess::sample
    pub(crate) fn stack(&self, task: TaskRef, asked: bool) -> Option<Stack> {
        if self.is_forked() {
            return None;
        }
        let (process, table, ring_index, tag) = {
            let core = self.lock();
            let (worker, ring_index, attempt) = core.scheduler.assignment(task)?;
            let slot = core.worker_slot(worker)?;
            let table = Arc::clone(&slot.connection.as_ref()?.table);
            (Arc::clone(&slot.process), table, ring_index, slot_tag(task.id, attempt))
        };
        let runs = || table.runs(ring_index, tag);
        // If its function runs before and after, it has run in between.
        runs().then(|| process.sample(asked && self.config.interrupts)).flatten().filter(|_| runs())
    }

    /// Asks the worker in a slot where its running task is, as [`stack`](Self::stack) does.
    #[cfg(feature = "status")]
    pub(crate) fn stack_in(&self, slot: u32) -> Option<Stack> {
        if self.is_forked() {
            return None;
        }
        let task = {
            let core = self.lock();
            core.running_in(core.worker_slots.get(slot as usize)?.as_ref()?)?.1
        };
        self.stack(task, true)
    }

    /// Looks where the task is that has been running longest, which nobody has asked for, so it is
    /// never interrupted. Returns its id too.
    pub(crate) fn longest_stack(&self) -> Option<(TaskId, Stack)> {
        let (_, task) = {
            let core = self.lock();
            let slots = core.worker_slots.iter().flatten();
            slots.filter_map(|slot| core.running_in(slot)).min_by_key(|(since, _)| *since)?
        };
        Some((task.id, self.stack(task, false)?))
    }
}

impl Core {
    /// Returns the task whose function the worker in a slot runs, and since when.
    fn running_in(&self, slot: &WorkerSlot) -> Option<(Monotonic, TaskRef)> {
        let table = &slot.connection.as_ref()?.table;
        let occupants = self.scheduler.occupants(slot.id).into_iter();
        let mut running = occupants.filter(|(ring_index, task, attempt)| {
            table.runs(*ring_index, slot_tag(task.id, *attempt))
        });
        running.find_map(|(ring_index, task, _)| Some((table.running_since(ring_index)?, task)))
    }
}
