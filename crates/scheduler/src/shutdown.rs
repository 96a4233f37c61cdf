//! Ends the pool. Each mode gets its time, then the next stronger one follows.
//!
//! ```text
//! Drain -----timeout----> Terminate --timeout--> Kill      tasks
//! Stop --grace--> SIGTERM --grace--> SIGKILL               each worker, once no task is left
//! ```
//!
//! A drain without a timeout waits for tasks as long as they run, but never for a worker that is
//! stopped by a signal, because such a worker does not go on by itself. So the drain looks for
//! stopped workers at growing intervals and kills them. Their tasks are not retried: they would
//! stop the next worker as well.

use std::sync::Arc;
use std::time::Duration;

use brigade_base::{Monotonic, WorkerId};

use crate::alarms::PoolAlarm;
use crate::{
    Action, KillCause, Outbox, Phase, RevokeWhy, Scheduler, Shutdown, TaskData, TaskEnd,
    WorkerState,
};

impl<T: TaskData> Scheduler<T> {
    pub(crate) fn begin_shutdown(
        &mut self,
        now: Monotonic,
        mode: Shutdown,
        timeout: Option<Duration>,
        outbox: &mut Outbox<T>,
    ) {
        if self.lifecycle.has_ended() {
            return;
        }
        self.warm_up.stop(&mut self.workers);
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        if self.lifecycle.phase().mode().is_none_or(|current| mode > current) {
            self.enter(now, mode, deadline, outbox);
        } else {
            self.lifecycle.bring_forward(now, mode, deadline, self.settings.stop_grace);
        }
    }

    /// Enters a stronger mode.
    pub(crate) fn enter(
        &mut self,
        now: Monotonic,
        mode: Shutdown,
        deadline: Option<Monotonic>,
        outbox: &mut Outbox<T>,
    ) {
        if self.lifecycle.is_running() {
            self.at_shutdown = self.counters;
        }
        self.lifecycle.enter(now, mode, deadline, self.settings.stop_grace);
        if mode >= Shutdown::CancelPending {
            self.cancel_pending(outbox);
        }
        match mode {
            Shutdown::Drain | Shutdown::CancelPending => {}
            Shutdown::Terminate => {
                for worker in self.workers.iter() {
                    if worker.is_at_work() {
                        outbox.push(Action::Terminate { worker: worker.id });
                    }
                }
            }
            Shutdown::Kill => self.kill_all(outbox),
        }
    }

    fn cancel_pending(&mut self, outbox: &mut Outbox<T>) {
        for key in self.tasks.take_waiting() {
            self.end_task(key, TaskEnd::Cancelled, outbox);
        }
        self.revoke_all(RevokeWhy::Cancel, outbox);
    }

    fn kill_all(&mut self, outbox: &mut Outbox<T>) {
        let ids: Vec<WorkerId> = self.workers.iter().map(|worker| worker.id).collect();
        for id in ids {
            self.kill(id, KillCause::Shutdown, outbox);
        }
    }

    /// Sets or clears the alarms of the shutdown.
    pub(crate) fn update_shutdown_alarms(&mut self) {
        let (escalate_at, inspect_at) = match self.lifecycle.phase() {
            Phase::Draining { escalate_at, inspect_at, .. } => {
                (escalate_at, (!self.tasks.is_empty()).then_some(inspect_at))
            }
            Phase::Terminating { kill_at } => (Some(kill_at), None),
            Phase::Running | Phase::Killing | Phase::Ended => (None, None),
        };
        self.alarms.set_pool(PoolAlarm::Escalate, escalate_at);
        self.alarms.set_pool(PoolAlarm::Inspect, inspect_at);
    }

    /// Stops all workers if no task is left in a pool that is shutting down or broken, and ends the
    /// pool if no worker is left.
    pub(crate) fn settle(&mut self, now: Monotonic, outbox: &mut Outbox<T>) {
        if self.lifecycle.is_open() || self.lifecycle.has_ended() || !self.tasks.is_empty() {
            return;
        }
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            match worker.state {
                // It may still have revoked frames, which it skips before it stops.
                WorkerState::Ready => {
                    let worker = worker.id;
                    self.leave(worker.slot, WorkerState::Stopping);
                    outbox.push(Action::Stop { worker });
                    self.lifecycle.report_mut().workers_stopped += 1;
                    self.begin_escalation(now, index);
                }
                WorkerState::Stopping => self.begin_escalation(now, index),
                WorkerState::Starting => {
                    let worker = worker.id;
                    self.kill(worker, KillCause::Shutdown, outbox);
                }
                WorkerState::Vacant | WorkerState::Killing => {}
            }
        }
        let empty = self.workers.iter().all(|worker| worker.state == WorkerState::Vacant);
        if empty && !self.lifecycle.is_running() {
            self.lifecycle.end();
            self.workers.set_changed();
            outbox.push(Action::Ended);
        }
    }

    /// Breaks the pool: all tasks that have not started fail with the reason.
    pub(crate) fn break_pool(&mut self, reason: Arc<str>, outbox: &mut Outbox<T>) {
        if !self.lifecycle.break_down(reason) {
            return;
        }
        outbox.push(Action::Broke);
        for key in self.tasks.take_waiting() {
            self.end_task(key, TaskEnd::Broken, outbox);
        }
        self.revoke_all(RevokeWhy::Break, outbox);
    }

    /// Revokes all assigned tasks. Those that have started go on.
    pub(crate) fn revoke_all(&self, why: RevokeWhy, outbox: &mut Outbox<T>) {
        for worker in self.workers.iter() {
            for task in worker.assigned() {
                self.revoke(worker.id, task, why, outbox);
            }
        }
    }
}
