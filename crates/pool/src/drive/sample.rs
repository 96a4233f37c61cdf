//! Asks workers where their tasks are.

use std::sync::Arc;
use std::time::Duration;

use brigade_crash::Stack;
use brigade_scheduler::TaskRef;
use brigade_sys::clock::Monotonic;
use brigade_wire::TaskId;
use brigade_wire::slots::SlotState;

use super::shared::{Core, Shared};
use super::worker_slot::WorkerSlot;

impl Shared {
    /// Asks the worker that runs the task where it is. Blocks until it answers, at most for
    /// `timeout`.
    pub(crate) fn stack(&self, task: TaskRef, timeout: Duration) -> Option<Stack> {
        let since = self.running_since(task)?;
        let process = {
            let core = self.lock();
            let (worker, ..) = core.scheduler.assignment(task)?;
            Arc::clone(&core.worker_slot(worker)?.process)
        };
        let stack = process.sample(timeout)?;
        // Otherwise it may be the stack of the next task.
        (self.running_since(task) == Some(since)).then_some(stack)
    }

    /// Asks the worker in a slot where its running task is, as [`stack`](Self::stack) does.
    #[cfg(feature = "status")]
    pub(crate) fn stack_in(&self, slot: u32, timeout: Duration) -> Option<Stack> {
        if self.is_forked() {
            return None;
        }
        let task = {
            let core = self.lock();
            core.running_in(core.worker_slots.get(slot as usize)?.as_ref()?)?.1
        };
        self.stack(task, timeout)
    }

    /// Asks where the task is that has been running longest. Returns its id too.
    pub(crate) fn longest_stack(&self, timeout: Duration) -> Option<(TaskId, Stack)> {
        let (_, task) = {
            let core = self.lock();
            let slots = core.worker_slots.iter().flatten();
            slots.filter_map(|slot| core.running_in(slot)).min_by_key(|(since, _)| *since)?
        };
        Some((task.id, self.stack(task, timeout)?))
    }
}

impl Core {
    /// Returns the task that the worker in a slot runs, and since when.
    fn running_in(&self, slot: &WorkerSlot) -> Option<(Monotonic, TaskRef)> {
        let table = &slot.connection.as_ref()?.table;
        // The last one that has begun, because outcomes of earlier ones may be under way.
        let mut occupants = self.scheduler.occupants(slot.id).into_iter().rev();
        occupants.find_map(|(ring_index, task, _)| match table.state(ring_index) {
            SlotState::Running { since } => Some((since, task)),
            SlotState::Free | SlotState::Queued | SlotState::Revoked => None,
        })
    }
}
