//! Looks up how far a task is that was sent to a worker.

use brigade_scheduler::{Observation, Stage, TaskRef};
use brigade_sys::clock::now;
use brigade_wire::WorkerId;
use brigade_wire::slots::slot_tag;

use crate::drive::shared::Core;

impl Core {
    /// Reads from the worker's table how far a task has progressed.
    pub(in crate::drive) fn observe(
        &mut self,
        worker: WorkerId,
        ring_index: u16,
        task: TaskRef,
    ) -> Observation {
        let worker_slot = self.worker_slot(worker);
        let connection = worker_slot.and_then(|it| Some((it.awaits_copy, it.connection.as_ref()?)));
        let attempt = self.scheduler.assignment(task).map(|(.., attempt)| attempt);
        let (Some((awaits_copy, connection)), Some(attempt)) = (connection, attempt) else {
            return Observation { began: None, section: None, usage: None, stage: Stage::Runs };
        };
        let (table, tag) = (&connection.table, slot_tag(task.id, attempt));
        let (began, stage) = match table.running_since(ring_index) {
            Some(since) => {
                let stage = match (table.runs(ring_index, tag), awaits_copy) {
                    (true, _) => Stage::Runs,
                    (false, false) => Stage::Ended,
                    (false, true) => Stage::Copied,
                };
                (Some(since), stage)
            }
            // If the worker has overwritten its table, the state of the task is unknown, so its
            // time runs from now at the latest.
            None => (table.may_have_begun(ring_index, tag).then(now), Stage::Runs),
        };
        let section = table.section().map(|section| section.due);
        let item = table.begun_items(ring_index);
        // One that is not to be trusted may run it and say otherwise.
        let may_lie =
            self.distrusts && self.scheduler.due(worker).is_some_and(|it| it.id == task.id);
        let usage = (began.is_some() || may_lie)
            .then(|| self.measure_usage(worker, (task, attempt, item)))
            .flatten();
        Observation { began, section, usage, stage }
    }
}
