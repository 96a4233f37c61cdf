//! Reports tasks that are too old.

use std::time::Duration;

use brigade_scheduler::{TaskRef, WorkerStatus};
use brigade_supervisor::note;
use brigade_sys::clock::Monotonic;

use crate::drive::deferred::Deferred;
use crate::drive::shared::Core;

/// Reports the number of tasks that are too old and were not reported one by one.
pub(in crate::drive) fn report_more(tasks: usize, deferred: &mut Deferred) {
    note!(deferred, WARN, tasks, "more tasks are slow");
}

impl Core {
    pub(in crate::drive) fn report_slow(
        &self,
        now: Monotonic,
        task: TaskRef,
        elapsed: Duration,
        deferred: &mut Deferred,
    ) {
        let Some(cell) = self.scheduler.task(task.key) else { return };
        let (id, label) = (task.id, cell.label().cloned());
        let assignment = self.scheduler.assignment(task);
        let worker = assignment.map(|(worker, ..)| worker);
        let attempt = assignment.map(|(.., attempt)| attempt.get());
        let pid = worker.and_then(|worker| self.worker_slot(worker)?.process.pid());
        let running = assignment.and_then(|(worker, ring_index, _)| {
            let since = self.connection(worker)?.table.running_since(ring_index)?;
            Some(now.saturating_since(since))
        });
        let phase = match (running, worker) {
            (Some(_), _) => "running",
            (None, None) if self.waits_for_a_start() => "starting",
            (None, _) => "queued",
        };
        note!(
            deferred, WARN, task = %id, label = label.as_deref(), attempt, ?elapsed, phase,
            running = running.map(debug), worker = worker.map(display), pid, "task is slow"
        );
    }

    /// Returns `true` if workers are being started, and none is ready.
    fn waits_for_a_start(&self) -> bool {
        let has = |wanted: WorkerStatus| self.scheduler.workers().any(|(_, it)| it == wanted);
        has(WorkerStatus::Starting) && !has(WorkerStatus::Idle) && !has(WorkerStatus::Busy)
    }
}
