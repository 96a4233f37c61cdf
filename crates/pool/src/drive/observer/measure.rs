//! Measures the pool: its record, completed by what the scheduler and the workers' tables say.

use std::sync::Arc;

use brigade_metrics::{
    Measurement, PoolSnapshot, PoolState, Registry, RunningTask, Source, WorkerSnapshot,
    WorkerState,
};
use brigade_scheduler::WorkerStatus;
use brigade_sys::clock::{Monotonic, now};
use brigade_wire::WorkerId;
use tracing::Level;

use crate::cell::TaskCell;
use crate::drive::observer::recording::failure_kind;
use crate::drive::shared::{Core, Shared};

impl Source for Shared {
    fn measure(&self) -> Measurement {
        if self.is_forked() {
            return Measurement::default();
        }
        let (name, pool) = (self.config.supervisor.pool.clone(), self.number());
        let mut measurement = self.lock().measure(now());
        (measurement.snapshot.name, measurement.snapshot.pool) = (name, pool);
        measurement.snapshot.fork_server = self.supervisor.fork_server();
        measurement
    }
}

impl Shared {
    /// Adds the pool to those of the process.
    pub(in crate::drive) fn register(self: &Arc<Self>) {
        let pool: Arc<dyn Source> = Arc::<Self>::clone(self);
        let number = Registry::of_process().register(Arc::downgrade(&pool));
        let _ = self.number.set(number);
    }

    fn number(&self) -> u64 {
        self.number.get().copied().unwrap_or(0)
    }

    /// Counts the pool as ended. If it was the last one, the output thread logs the report of all
    /// pools, unless this process is a worker.
    pub(in crate::drive) fn retire(&self) {
        let all = Registry::of_process().retire(self.number(), &self.measure());
        if let Some(all) = all.filter(|_| brigade_worker::context::depth().is_none()) {
            self.note(Level::DEBUG, move |_| tracing::debug!("all pools have ended\n{all}"));
        }
    }
}

impl Core {
    fn measure(&mut self, now: Monotonic) -> Measurement {
        let mut measurement = self.observers.metrics.recorder.measure(now.as_nanos());
        let snapshot = &mut measurement.snapshot;
        let counters = self.scheduler.counters();
        snapshot.state = self.state();
        snapshot.attempts =
            counters.finished + counters.failed_by_death + counters.killed + counters.retried;
        snapshot.pending = self.scheduler.pending();
        let mut running = 0;
        for (worker, status) in self.scheduler.workers() {
            let slot = worker.slot as usize;
            while snapshot.workers.len() <= slot {
                let mut vacant = WorkerSnapshot::default();
                vacant.slot = u32::try_from(snapshot.workers.len()).unwrap_or(u32::MAX);
                snapshot.workers.push(vacant);
            }
            let task = self.running_task(worker, now, &mut running, snapshot);
            let entry = &mut snapshot.workers[slot];
            entry.generation = worker.generation;
            entry.pid = self.worker_slot(worker).and_then(|slot| slot.process.pid());
            entry.state = match status {
                WorkerStatus::Vacant => WorkerState::Vacant,
                WorkerStatus::Starting => WorkerState::Starting,
                WorkerStatus::Idle => WorkerState::Idle,
                WorkerStatus::Busy => WorkerState::Busy,
                WorkerStatus::Stopping => WorkerState::Stopping,
            };
            entry.running = task;
        }
        snapshot.running = running;
        snapshot.queued = snapshot.pending - running;
        snapshot.max_queue_depth = snapshot.max_queue_depth.max(snapshot.queued);
        measurement
    }

    fn state(&self) -> PoolState {
        match self.scheduler.broken_reason() {
            Some(reason) => PoolState::Broken { reason: reason.to_string() },
            None if self.scheduler.has_ended() => PoolState::Ended,
            None if self.scheduler.is_open() => PoolState::Open,
            None => PoolState::ShuttingDown,
        }
    }

    /// Returns the task that a worker runs, and adds the number of tasks that it has begun to
    /// `running`. The finished items of a chunk under way count as finished.
    fn running_task(
        &self,
        worker: WorkerId,
        now: Monotonic,
        running: &mut u64,
        snapshot: &mut PoolSnapshot,
    ) -> Option<RunningTask> {
        let connection = self.connection(worker)?;
        let mut last = None;
        for (ring_index, task, attempt) in self.scheduler.occupants(worker) {
            let Some(since) = connection.table.running_since(ring_index) else { continue };
            let cell = self.scheduler.task(task.key)?;
            let (items, left) = count_items(cell, snapshot).unwrap_or((1, 1));
            if left == 0 {
                // The chunk's last item has ended, and its own end is still under way.
                continue;
            }
            *running += 1;
            let mut shown = RunningTask::default();
            shown.task = task.id.get();
            shown.attempt = attempt.get();
            cell.label().map_or("", AsRef::as_ref).clone_into(&mut shown.label);
            shown.items = items;
            shown.elapsed = now.saturating_since(since);
            last = Some(shown);
        }
        last
    }
}

/// Counts the finished items of a chunk that a worker runs. Returns the number of all its items,
/// and of those that are not finished.
fn count_items(cell: &TaskCell, snapshot: &mut PoolSnapshot) -> Option<(u32, u32)> {
    cell.with_chunk_progress(|chunk| {
        let answered = u64::from(chunk.answered);
        let failed = chunk.failures.len() as u64;
        snapshot.pending -= answered;
        snapshot.finished += answered;
        snapshot.succeeded += answered - failed;
        snapshot.attempts += answered;
        for (_, kind) in &chunk.failures {
            *snapshot.failures.entry(failure_kind(kind)).or_default() += 1;
        }
        (chunk.shape.items, chunk.shape.items - chunk.answered)
    })
}
