//! Kills workers, and ends running tasks without harming others.
//!
//! A running task is ended by killing its worker, which must not harm another task. First every
//! task that waits behind it is taken back. If one of them cannot be taken back, it has started, so
//! the task to be killed has already ended, and the worker is spared. Otherwise the worker runs
//! that task or nothing. Once that is decided, the outcome of the task does not count any more,
//! except for the items of a chunk.
//!
//! A task whose function has ended is spared as well, because its outcome is on its way: until it
//! arrives, but for no longer than a second, unless the driver itself copies the value.
//!
//! Only the worker claims that a task has started. If it claims so of a task behind, it must have
//! written the outcome of the task to be killed before. If that outcome does not arrive within a
//! second, the worker lied.

use std::time::Duration;

use brigade_base::{Monotonic, WorkerId};

use crate::entry::{EntryState, TaskEntry};
use crate::worker::PendingKill;
use crate::{
    Action, KillCause, Outbox, RevokeWhy, Scheduler, Stage, TaskData, TaskKey, TaskRef,
    WorkerEntry, WorkerState,
};

/// Maximum time between the start of a task and the arrival of the outcome of the task before it,
/// and between the end of a function and the arrival of its outcome.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

impl<T: TaskData> Scheduler<T> {
    /// Kills a worker, unless it is already being killed. Its death is reported later.
    pub(crate) fn kill(&mut self, worker: WorkerId, cause: KillCause, outbox: &mut Outbox<T>) {
        self.kill_now(worker, cause, false, outbox);
    }

    /// Kills a worker as [`kill`](Self::kill) does; see [`Action::Kill`] for `at_once`.
    pub(crate) fn kill_now(
        &mut self,
        worker: WorkerId,
        cause: KillCause,
        at_once: bool,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.workers.live_mut(worker) else {
            return;
        };
        if entry.state == WorkerState::Killing {
            return;
        }
        entry.kill_cause = Some(cause);
        entry.pending_kill = None;
        self.leave(worker.slot, WorkerState::Killing);
        self.lifecycle.count_killed_worker();
        outbox.push(Action::Kill { worker, cause, at_once });
    }

    /// Ends a task, even if it has started.
    pub(crate) fn kill_task(&mut self, task: TaskRef, outbox: &mut Outbox<T>) {
        match self.assignment(task) {
            None => self.cancel(task, outbox),
            Some((worker, ring_index, _)) => {
                outbox.push(Action::Revoke { worker, ring_index, task, why: RevokeWhy::Kill });
            }
        }
    }

    /// Kills the worker of a running task, unless it turns out that the task has ended.
    pub(crate) fn kill_running(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        key: TaskKey,
        cause: KillCause,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.workers.live_mut(worker) else { return };
        if entry.state == WorkerState::Killing {
            return;
        }
        if entry.pending_kill.is_some() {
            // It may spare the worker, so this task is checked again after it.
            return self.set_timer(key, now);
        }
        // The tasks before it are finished, even if their outcomes have not been read yet.
        let from_it = entry.assigned().skip_while(|(_, other)| *other != key);
        let behind: Vec<(u16, TaskKey)> = from_it.skip(1).collect();
        let kill = PendingKill { key, cause, pending: behind.len(), spared: false };
        entry.pending_kill = Some(kill);
        if behind.is_empty() {
            self.carry_out_kill(now, worker, kill, outbox);
        }
        // From newest to oldest, so that the front of the queue keeps the order of submission.
        for task in behind.into_iter().rev() {
            self.revoke(worker, task, RevokeWhy::Clear, outbox);
        }
    }

    /// Ends a task that has begun, unless its function has ended.
    pub(crate) fn kill_begun(
        &mut self,
        (worker, ring_index): (WorkerId, u16),
        task: TaskRef,
        outbox: &mut Outbox<T>,
    ) {
        let rare = self.tasks.rare_mut(task.key);
        rare.constraints.get_or_insert_default().is_asked = true;
        outbox.push(Action::Observe { worker, ring_index, task });
    }

    /// Returns the time until which a task that is to be killed is spared, because its function has
    /// ended.
    pub(crate) fn spared_until(
        &mut self,
        now: Monotonic,
        key: TaskKey,
        stage: Stage,
    ) -> Option<Monotonic> {
        let since = match stage {
            Stage::Runs => return None,
            Stage::Ended => *self.tasks.constraints_mut(key)?.ended_at.get_or_insert(now),
            Stage::Copied => now,
        };
        Some(since.saturating_add(ANSWERED_WITHIN)).filter(|due| *due > now)
    }

    /// Handles the answer about one of the tasks behind the one to be killed.
    pub(crate) fn answered_behind(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        revoked: bool,
        outbox: &mut Outbox<T>,
    ) {
        let Some(kill) =
            self.workers.live_mut(worker).and_then(|entry| entry.pending_kill.as_mut())
        else {
            return;
        };
        kill.pending -= 1;
        kill.spared |= !revoked;
        if kill.pending == 0 {
            let kill = *kill;
            self.carry_out_kill(now, worker, kill, outbox);
        }
    }

    fn carry_out_kill(
        &mut self,
        now: Monotonic,
        worker: WorkerId,
        kill: PendingKill,
        outbox: &mut Outbox<T>,
    ) {
        if let Some(entry) = self.workers.live_mut(worker) {
            entry.pending_kill = None;
        }
        if kill.spared {
            self.spare(now, worker, kill.key, outbox);
        } else {
            let (id, cause) = (self.tasks.id(kill.key), kill.cause);
            let asked = (cause == KillCause::Asked).then_some(kill.key);
            let at_once = self.may_be_reported_at_once(worker, asked);
            outbox.push(Action::TaskKilled { worker, task: id, cause });
            let is_chunk = self.tasks.items(kill.key).is_some();
            if let Some(entry) =
                self.workers.live_mut(worker).filter(|it| it.state != WorkerState::Killing)
            {
                entry.condemned = (!is_chunk).then_some(kill.key);
            }
            self.kill_now(worker, cause, at_once, outbox);
        }
    }

    /// Returns `true` if the death of a worker may be reported before its process is reaped: none
    /// of its tasks may run again, except for those that are known not to have started.
    ///
    /// Two attempts of one task must never overlap. Other tasks that are still assigned here may
    /// have started if the worker lies. The progress of a chunk, which may be any of the tasks
    /// because outcomes may be unread, is known only when the process is dead. A task that does not
    /// run again whatever its settings say is `given_up`.
    fn may_be_reported_at_once(&self, worker: WorkerId, given_up: Option<TaskKey>) -> bool {
        let may_run_again = |key| {
            self.tasks.items(key).is_some()
                || (given_up != Some(key) && self.tasks.retries_left(key) > 0)
        };
        let mut tasks = self.workers.live(worker).into_iter().flat_map(WorkerEntry::assigned);
        self.lifecycle.is_running() && !tasks.any(|(_, key)| may_run_again(key))
    }

    /// Returns `true` if the death of a worker that has crashed may be reported at once.
    pub fn may_report_crash(&self, worker: WorkerId) -> bool {
        self.may_be_reported_at_once(worker, None)
    }

    /// Assigns nothing more to a worker that is about to end. One that was asked to stop gets
    /// nothing anyway.
    pub(crate) fn crashed(&mut self, worker: WorkerId) {
        let Some(entry) = self.workers.live_mut(worker) else { return };
        if entry.state == WorkerState::Ready {
            entry.pending_kill = None;
            self.leave(worker.slot, WorkerState::Killing);
        }
    }

    /// Spares the worker: the task has ended, if the worker tells the truth.
    fn spare(&mut self, now: Monotonic, worker: WorkerId, key: TaskKey, outbox: &mut Outbox<T>) {
        let Some(entry) = self.workers.live_mut(worker) else { return };
        let completed = entry.completed;
        match entry.spared {
            Some((at, since)) if at == completed => {
                if now.saturating_since(since) >= ANSWERED_WITHIN {
                    return self.kill(worker, KillCause::Protocol, outbox);
                }
            }
            _ => entry.spared = Some((completed, now)),
        }
        let task = self.tasks.get(key).map(TaskEntry::state);
        if matches!(task, Some(EntryState::Assigned { worker: at, .. }) if at == worker.slot) {
            self.set_timer(key, now.saturating_add(ANSWERED_WITHIN));
        }
    }
}
