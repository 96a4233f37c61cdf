//! How a pool ends: each mode gets its time, then the next stronger one follows.
//!
//! ```text
//! Drain -----timeout----> Terminate --timeout--> Kill      tasks
//! Stop --grace--> SIGTERM --grace--> SIGKILL               each worker, once no task is left
//! ```
//!
//! A drain without a timeout waits for tasks as long as they run, but never for a worker that is
//! stopped by a signal: such a worker will not go on by itself, so it is looked for at growing
//! intervals and killed. Its task is not retried: it would stop the next worker as well.

use std::time::Duration;

use brigade_wire::WorkerId;
use serde::{Deserialize, Serialize};

use super::{Action, End, KillCause, Machine, Now, Outbox, RevokeWhy, WorkerState};

/// When a drain looks for stopped workers the first time; the interval doubles each time.
const FIRST_INSPECTION: Duration = Duration::from_millis(250);

/// The longest interval between two such looks.
const LAST_INSPECTION: Duration = Duration::from_secs(30);

/// How a pool is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shutdown {
    /// Run everything that was accepted, then stop the workers.
    Drain,
    /// Cancel what has not begun, let what runs finish.
    CancelPending,
    /// Cancel what has not begun, send SIGTERM to the workers that run something.
    Terminate,
    /// Cancel what has not begun, kill the workers with SIGKILL.
    Kill,
}

/// How far the pool's end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    Draining { mode: Shutdown, escalate_at: Option<Now>, inspect_at: Now, interval: Duration },
    Terminating { kill_at: Now },
    Killing,
    Ended,
}

impl Phase {
    pub(super) fn is_terminating(self) -> bool {
        matches!(self, Self::Terminating { .. } | Self::Killing)
    }

    /// Whether a task that comes back from a worker is cancelled instead of run again.
    pub(super) fn cancels_pending(self) -> bool {
        self.mode().is_some_and(|mode| mode >= Shutdown::CancelPending)
    }

    /// The strongest wish so far.
    fn mode(self) -> Option<Shutdown> {
        match self {
            Self::Running => None,
            Self::Draining { mode, .. } => Some(mode),
            Self::Terminating { .. } => Some(Shutdown::Terminate),
            Self::Killing | Self::Ended => Some(Shutdown::Kill),
        }
    }
}

/// What became of tasks and workers since shutdown began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) finished: u64,
    pub(crate) cancelled: u64,
    pub(crate) failed: u64,
    pub(crate) killed: u64,
    pub(crate) workers_stopped: u64,
    pub(crate) workers_killed: u64,
}

impl<T> Machine<T> {
    pub(super) fn begin_shutdown(
        &mut self,
        now: Now,
        mode: Shutdown,
        timeout: Option<Duration>,
        outbox: &mut Outbox<T>,
    ) {
        if self.phase == Phase::Ended {
            return;
        }
        self.stop_warming();
        let deadline = timeout.and_then(|timeout| now.checked_add(timeout));
        if self.phase.mode().is_none_or(|current| mode > current) {
            self.enter(now, mode, deadline, outbox);
        } else {
            self.hurry(now, mode, deadline, outbox);
        }
        self.settle(now, outbox);
    }

    /// A wish that is no stronger than an earlier one can only bring the end forward.
    fn hurry(&mut self, now: Now, mode: Shutdown, deadline: Option<Now>, outbox: &mut Outbox<T>) {
        let grace = self.settings.stop_grace;
        match &mut self.phase {
            Phase::Draining { escalate_at, .. } => {
                *escalate_at = escalate_at.iter().copied().chain(deadline).min();
            }
            Phase::Terminating { kill_at } => {
                let wanted = match mode {
                    Shutdown::Terminate => Some(deadline.unwrap_or(now.saturating_add(grace))),
                    _ => deadline.map(|deadline| deadline.saturating_add(grace)),
                };
                *kill_at = wanted.map_or(*kill_at, |wanted| wanted.min(*kill_at));
            }
            Phase::Running | Phase::Killing | Phase::Ended => {}
        }
        outbox.push(Action::Rearm);
    }

    /// Goes on to a stronger way of ending. No caller who was promised an earlier end waits for longer because of it.
    fn enter(&mut self, now: Now, mode: Shutdown, deadline: Option<Now>, outbox: &mut Outbox<T>) {
        let grace = self.settings.stop_grace;
        let promised = match self.phase {
            Phase::Draining { escalate_at, .. } => escalate_at,
            _ => None,
        };
        self.phase = match mode {
            Shutdown::Drain | Shutdown::CancelPending => Phase::Draining {
                mode,
                escalate_at: promised.into_iter().chain(deadline).min(),
                inspect_at: now.saturating_add(FIRST_INSPECTION),
                interval: FIRST_INSPECTION,
            },
            Shutdown::Terminate => {
                let kill_at = deadline.unwrap_or(now.saturating_add(grace));
                Phase::Terminating {
                    kill_at: promised
                        .map_or(kill_at, |time| kill_at.min(time.saturating_add(grace))),
                }
            }
            Shutdown::Kill => Phase::Killing,
        };
        outbox.push(Action::Rearm);
        if mode >= Shutdown::CancelPending {
            self.cancel_pending(outbox);
        }
        match mode {
            Shutdown::Drain | Shutdown::CancelPending => {}
            Shutdown::Terminate => {
                for worker in &self.workers {
                    if worker.is_at_work() {
                        outbox.push(Action::Terminate { worker: worker.id });
                    }
                }
            }
            Shutdown::Kill => self.kill_all(outbox),
        }
    }

    fn cancel_pending(&mut self, outbox: &mut Outbox<T>) {
        for key in self.take_all_out() {
            self.counters.cancelled += 1;
            self.tally.cancelled += 1;
            self.end_task(key, End::Cancelled, outbox);
        }
        self.revoke_all(RevokeWhy::Cancel, outbox);
    }

    fn kill_all(&mut self, outbox: &mut Outbox<T>) {
        let ids: Vec<WorkerId> = self.workers.iter().map(|worker| worker.id).collect();
        for id in ids {
            self.kill(id, KillCause::Shutdown, outbox);
        }
    }

    /// Kills a worker once; its death is reported later.
    pub(super) fn kill(&mut self, worker: WorkerId, cause: KillCause, outbox: &mut Outbox<T>) {
        self.kill_now(worker, cause, false, outbox);
    }

    /// As [`kill`](Self::kill); `at_once` is explained at [`Action::Kill`].
    pub(super) fn kill_now(
        &mut self,
        worker: WorkerId,
        cause: KillCause,
        at_once: bool,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.live_mut(worker) else {
            return;
        };
        if entry.state == WorkerState::Killing {
            return;
        }
        entry.state = WorkerState::Killing;
        entry.kill_cause = Some(cause);
        entry.condemned = None;
        entry.stop_deadline = None;
        self.complete = false;
        self.idle.retain(|slot| *slot != worker.slot);
        self.tally.workers_killed += u64::from(self.phase != Phase::Running);
        outbox.push(Action::Kill { worker, cause, at_once });
    }

    pub(super) fn shutdown_deadlines(&self) -> impl Iterator<Item = Now> + use<T> {
        let (first, second) = match self.phase {
            Phase::Draining { escalate_at, inspect_at, .. } => {
                (escalate_at, (!self.tasks.is_empty()).then_some(inspect_at))
            }
            Phase::Terminating { kill_at } => (Some(kill_at), None),
            Phase::Running | Phase::Killing | Phase::Ended => (None, None),
        };
        first.into_iter().chain(second)
    }

    pub(super) fn tick(&mut self, now: Now, outbox: &mut Outbox<T>) {
        match self.phase {
            Phase::Draining { escalate_at: Some(time), .. } if time <= now => {
                self.enter(now, Shutdown::Terminate, None, outbox);
            }
            Phase::Draining { ref mut inspect_at, ref mut interval, .. } if *inspect_at <= now => {
                *interval = (*interval * 2).min(LAST_INSPECTION);
                *inspect_at = now.saturating_add(*interval);
                // Also one with nothing but revoked frames: it takes the room of tasks that wait.
                for worker in &self.workers {
                    if worker.is_busy() {
                        outbox.push(Action::Inspect { worker: worker.id });
                    }
                }
            }
            Phase::Terminating { kill_at } if kill_at <= now => {
                self.enter(now, Shutdown::Kill, None, outbox);
            }
            _ => {}
        }
        self.climb_ladders(now, outbox);
        self.expire(now, outbox);
        self.retire_the_old(now, outbox);
        self.rescue(now, outbox);
        if self.has_demand() {
            self.assign(now, outbox);
        }
        self.settle(now, outbox);
        outbox.push(Action::Rearm);
    }

    /// A worker has come or gone: others that are stopped are looked for as soon as in the beginning.
    pub(super) fn inspect_soon(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if let Phase::Draining { inspect_at, interval, .. } = &mut self.phase {
            *interval = FIRST_INSPECTION;
            *inspect_at = now.saturating_add(FIRST_INSPECTION).min(*inspect_at);
            outbox.push(Action::Rearm);
        }
    }

    /// The next rung for each worker that was asked to leave and is still there.
    fn climb_ladders(&mut self, now: Now, outbox: &mut Outbox<T>) {
        let grace = self.settings.stop_grace;
        let mut to_kill = Vec::new();
        for worker in &mut self.workers {
            if worker.stop_deadline.is_none_or(|time| time > now) {
                continue;
            }
            if worker.state == (WorkerState::Stopping { terminated: false }) {
                worker.state = WorkerState::Stopping { terminated: true };
                worker.stop_deadline = Some(now.saturating_add(grace));
                outbox.push(Action::Terminate { worker: worker.id });
            } else {
                to_kill.push(worker.id);
            }
        }
        for worker in to_kill {
            self.kill(worker, KillCause::Shutdown, outbox);
        }
    }

    /// After anything that may have been the last thing: sends workers home, ends the pool.
    pub(super) fn settle(&mut self, now: Now, outbox: &mut Outbox<T>) {
        if self.phase == Phase::Ended || !self.tasks.is_empty() {
            return;
        }
        if self.phase == Phase::Running && self.broken.is_none() {
            return;
        }
        self.complete = false;
        for index in 0..self.workers.len() {
            let worker = &mut self.workers[index];
            match worker.state {
                // Frames of revoked tasks may still be under way; the worker passes over them and then leaves.
                WorkerState::Ready => {
                    worker.state = WorkerState::Stopping { terminated: false };
                    outbox.push(Action::Stop { worker: worker.id });
                    self.tally.workers_stopped += 1;
                    self.begin_ladder(now, index, outbox);
                }
                WorkerState::Stopping { .. } => self.begin_ladder(now, index, outbox),
                WorkerState::Starting => {
                    let worker = worker.id;
                    self.kill(worker, KillCause::Shutdown, outbox);
                }
                WorkerState::Vacant | WorkerState::Killing => {}
            }
        }
        self.idle.clear();
        let empty = self.workers.iter().all(|worker| worker.state == WorkerState::Vacant);
        if empty && self.phase != Phase::Running {
            self.phase = Phase::Ended;
            outbox.push(Action::Ended);
        }
    }
}
