//! Looks at what tasks with limits use, and sets the limits of tasks that have their own.

use std::time::Duration;

use brigade_scheduler::{Event, TaskKey, TaskRef, Usage};
use brigade_supervisor::note;
use brigade_wire::link::LinkSender;
use brigade_wire::{Attempt, ToWorker, WorkerId};

use crate::cell::TaskCell;
use crate::drive::deferred::Deferred;
use crate::drive::shared::Core;
use crate::drive::watch::usage::Measured;

impl Core {
    /// Measures a running task that has a limit on what it uses.
    pub(in crate::drive) fn measure_usage(
        &mut self,
        worker: WorkerId,
        what: (TaskRef, Attempt, u64),
    ) -> Option<Usage> {
        let limits = self.scheduler.task(what.0.key)?.deadlines()?.limits;
        if limits.cpu.is_none() && limits.memory.is_none() {
            return None;
        }
        let slot = self.worker_slot_mut(worker)?;
        let limited = slot.process.limited()?;
        let clock = limits.cpu.map_or(Some(Duration::ZERO), |_| limited.cpu_time())?;
        let watched = limits.memory.filter(|_| !limited.kernel_limits_memory());
        let memory = watched.map_or(0, |_| limited.resident());
        let before = slot.measured.take().filter(|measured| measured.what == what);
        let is_new = before.is_none();
        let since = before.map_or(clock, |measured| measured.clock);
        let usage = Usage { cpu: clock.saturating_sub(since), is_new, memory };
        slot.measured = Some(Measured { what, clock: since, usage });
        Some(usage)
    }

    /// Makes a worker that has left threads after a task one that is replaced.
    #[cold]
    pub(in crate::drive) fn look_for_threads(&self, event: &mut Event<TaskCell>) {
        let (worker, worn) = match event {
            Event::Finished { worker, worn, .. } => (*worker, worn),
            Event::Returned(returned) => (returned.worker, &mut returned.worn),
            _ => return,
        };
        if let Some(limited) = self.worker_slot(worker).and_then(|slot| slot.process.limited()) {
            *worn |= limited.has_left_threads();
        }
    }

    /// Sets the limit on the memory of a worker that is going to run the task, if the task has one
    /// of its own, or the one before had. The worker is idle then.
    #[inline]
    pub(in crate::drive) fn prepare_for(
        &mut self,
        worker: WorkerId,
        key: TaskKey,
        deferred: &mut Deferred,
    ) {
        let cell = self.scheduler.task(key).filter(|cell| !cell.is_ordinary());
        let memory = cell.and_then(|cell| cell.own_memory_limit());
        self.has_limits |= cell.is_some_and(|cell| cell.is_limited());
        if self.scheduler.runs_copies() && cell.is_some_and(|cell| cell.is_limited()) {
            // Its own process is the one that is measured and limited here.
            self.tell(worker, &ToWorker::Yourself);
        }
        if memory.is_some() || self.worker_slot(worker).is_some_and(|slot| slot.is_prepared) {
            self.prepare_worker(worker, memory, deferred);
        }
    }

    /// Returns `true` if a worker, or the copy of it that runs a task, is stopped by a signal.
    pub(in crate::drive) fn is_stopped(&self, worker: WorkerId) -> bool {
        let copies = self.scheduler.runs_copies();
        self.worker_slot(worker).is_some_and(|slot| slot.process.is_stopped(copies))
    }

    /// Sends a message without a payload.
    #[cold]
    pub(in crate::drive) fn tell(&mut self, worker: WorkerId, message: &ToWorker<'_>) {
        if let Some(connection) = self.connection_mut(worker) {
            let mut head = Vec::new();
            message.encode_head(&mut head);
            // If the worker is gone, nothing is left to do what it says.
            let _ = connection.link.send(&head, &[]);
        }
    }

    #[cold]
    fn prepare_worker(&mut self, worker: WorkerId, memory: Option<u64>, deferred: &mut Deferred) {
        let Some(slot) = self.worker_slot_mut(worker) else { return };
        slot.is_prepared = memory.is_some();
        let prepared = slot.process.limited().map(|it| it.prepare_for(memory));
        let Some(Err(error)) = prepared else { return };
        let pid = slot.process.pid();
        note!(deferred, WARN, %worker, pid, %error, "cannot limit the memory of a task");
        // Nobody else may run it without its limit.
        self.replies.push_back(Event::Misbehaved { worker });
    }
}
