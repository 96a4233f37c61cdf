//! Asks workers where their tasks are.

use std::sync::Arc;
use std::time::Duration;

use brigade_crash::Stack;
use brigade_scheduler::TaskRef;
#[cfg(feature = "status")]
use brigade_wire::slots::SlotState;

use super::shared::Shared;

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
            let worker = core.worker_slots.get(slot as usize)?.as_ref()?;
            let table = &worker.connection.as_ref()?.table;
            let runs = |it: u16| matches!(table.state(it), SlotState::Running { .. });
            let mut occupants = core.scheduler.occupants(worker.id).into_iter().rev();
            occupants.find(|(ring_index, ..)| runs(*ring_index))?.1
        };
        self.stack(task, timeout)
    }
}
