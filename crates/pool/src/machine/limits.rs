//! What ends a task before its time: its limits, and whoever kills it.
//!
//! The machine does not hear when a worker begins a task. So a timer is armed for the first moment at which a limit can be
//! exceeded; when it fires, the driver looks when the task began (`Action::Observe`), and the timer is armed anew if that
//! was later. A task is therefore never ended early, and as exactly as the driver keeps time.
//!
//! A running task is ended by killing its worker, which must not harm another task. First everything that waits behind it
//! is taken back. If something could not be taken back it has begun, and so the condemned task has ended: nobody is killed
//! then. Otherwise the worker runs the condemned task or nothing, and what it had answered before the kill still counts.
//! That something has begun is the worker's word. If the answer to the condemned task, which it wrote before, is not there
//! after a second, it lied.

use std::time::Duration;

use brigade_wire::WorkerId;

use super::task::{Place, Terms};
use super::{
    Action, End, KillCause, Machine, Now, Observation, Occupant, Outbox, Phase, RevokeWhy, TaskKey,
    TaskRef, WorkerState,
};

/// How long after another task has begun the answer to the one before may take to be read.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// A task whose worker is to be killed, once nothing else can begin there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Condemned {
    key: TaskKey,
    cause: KillCause,
    /// Revocations that are not answered.
    pending: usize,
    /// Something behind the task has begun, so the task has ended.
    spared: bool,
}

impl<T> Machine<T> {
    /// Watches over a task that has entered the queue, or has come back to it.
    pub(super) fn watch_waiting(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        let task = &mut self.tasks[key.index()];
        let submitted = Duration::from_nanos(task.submitted);
        let Some(terms) = &mut task.terms else { return };
        match terms.queue_due(submitted) {
            Some(due) => self.set_timer(key, due, outbox),
            None => self.disarm(key),
        }
    }

    /// Watches over a task that was sent to a worker. It can run once nothing is before it: see `comes_first`.
    pub(super) fn watch_sent(&mut self, now: Now, key: TaskKey, outbox: &mut Outbox<T>) {
        let task = &mut self.tasks[key.index()];
        let submitted = Duration::from_nanos(task.submitted);
        let Some(terms) = &mut task.terms else { return };
        terms.began_at = None;
        let due = match task.place {
            Place::Assigned { worker, .. }
                if self.workers[worker as usize].front() == Some(Occupant::Task(key)) =>
            {
                terms.due(now, submitted)
            }
            _ => terms.queue_due(submitted),
        };
        if let Some(due) = due {
            self.set_timer(key, due, outbox);
        }
    }

    /// Everything that was sent to a worker before its first task is answered, so that one may be running.
    pub(super) fn comes_first(&self, slot: u32, outbox: &mut Outbox<T>) {
        let worker = &self.workers[slot as usize];
        if let Some((link_slot, Occupant::Task(key))) = worker.in_flight().next()
            && let task = &self.tasks[key.index()]
            && task.terms.as_ref().is_some_and(|terms| terms.run_limit.is_some())
        {
            let (worker, task) = (worker.id, TaskRef { key, id: task.id });
            outbox.push(Action::Observe { worker, link_slot, task });
        }
    }

    fn set_timer(&mut self, key: TaskKey, due: Now, outbox: &mut Outbox<T>) {
        let Some(terms) = &mut self.tasks[key.index()].terms else { return };
        let deadline = u64::try_from(due.as_nanos()).unwrap_or(u64::MAX);
        match terms.timer {
            Some(timer) if self.timers.rearm(timer, deadline) => {}
            _ => terms.timer = Some(self.timers.arm(deadline, key)),
        }
        self.rearm_for(Duration::from_nanos(deadline), outbox);
    }

    /// Takes the timer of a task away.
    pub(super) fn disarm(&mut self, key: TaskKey) {
        let terms = self.tasks[key.index()].terms.as_mut();
        if let Some(timer) = terms.and_then(|terms| terms.timer.take()) {
            self.timers.cancel(timer);
        }
    }

    /// Looks at all tasks whose timer has fired.
    pub(super) fn expire(&mut self, now: Now, outbox: &mut Outbox<T>) {
        let time = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        while let Some(fired) = self.timers.expire(time) {
            let key = fired.value;
            let task = &mut self.tasks[key.index()];
            if let Some(terms) = &mut task.terms {
                terms.timer = None;
            }
            let id = task.id;
            match task.place {
                // Only the limit for waiting has a timer there.
                Place::Queued | Place::Reserved => {
                    self.take_out(key);
                    self.end_expired(key, outbox);
                    self.settle(now, outbox);
                }
                Place::Assigned { worker, link_slot } => {
                    let worker = self.workers[worker as usize].id;
                    outbox.push(Action::Observe { worker, link_slot, task: TaskRef { key, id } });
                }
            }
        }
    }

    /// When the task began, if it has.
    pub(super) fn observed(
        &mut self,
        now: Now,
        task: TaskRef,
        seen: Observation,
        outbox: &mut Outbox<T>,
    ) {
        let Observation { began, section } = seen;
        let Some((worker, link_slot, _)) = self.assignment(task) else { return };
        let entry = &mut self.tasks[task.key.index()];
        let submitted = Duration::from_nanos(entry.submitted);
        let Some(terms) = &mut entry.terms else { return };
        let Some(began) = began.or(terms.began_at) else {
            let queue_due = terms.queue_due(submitted);
            if queue_due.is_some_and(|due| due <= now) {
                outbox.push(Action::Revoke { worker, link_slot, task, why: RevokeWhy::Expire });
                return;
            }
            let due = terms.due(now, submitted);
            if let Some(due) = due {
                self.set_timer(task.key, due, outbox);
            }
            return;
        };
        // A worker that writes nonsense into the table does not live longer for it.
        let began = began.min(*terms.began_at.get_or_insert(now));
        terms.began_at = Some(began);
        let run_due = terms.run_limit.map(|limit| began.saturating_add(limit));
        if run_due.is_some_and(|due| due <= now) {
            self.condemn(now, worker, task.key, KillCause::Deadline, outbox);
        } else if section.is_some_and(|due| due <= now) {
            self.condemn(now, worker, task.key, KillCause::Section, outbox);
        } else if let Some(due) = run_due.into_iter().chain(section).min() {
            self.set_timer(task.key, due, outbox);
        }
    }

    /// The section of a task may last until then, or another one that it begins in its place may last longer. So it is looked
    /// at when the time has come, and not now.
    pub(super) fn section_begun(
        &mut self,
        worker: WorkerId,
        link_slot: u16,
        due: Now,
        outbox: &mut Outbox<T>,
    ) {
        let entry = self.live(worker);
        let key = entry.and_then(|entry| match entry.occupant(link_slot)? {
            Occupant::Task(key) => Some(key),
            Occupant::Revoked { .. } => None,
        });
        if let Some(key) = key {
            let terms = self.tasks[key.index()].terms.get_or_insert_default();
            let armed = terms.timer.and_then(|timer| self.timers.deadline(timer));
            let due = armed.map_or(due, |armed| due.min(Duration::from_nanos(armed)));
            self.set_timer(key, due, outbox);
        }
    }

    /// The task was to be taken back, and has just begun; it may have a limit for running. What its worker says of it later
    /// cannot undo that.
    pub(super) fn began_after_all(&mut self, now: Now, key: TaskKey, outbox: &mut Outbox<T>) {
        let Some(terms) = &mut self.tasks[key.index()].terms else { return };
        terms.began_at = Some(now);
        if let Some(limit) = terms.run_limit {
            self.set_timer(key, now.saturating_add(limit), outbox);
        }
    }

    /// Ends a task, whether it has begun or not.
    pub(super) fn kill_task(&mut self, now: Now, task: TaskRef, outbox: &mut Outbox<T>) {
        match self.assignment(task) {
            None => self.cancel(now, task, outbox),
            Some((worker, link_slot, _)) => {
                outbox.push(Action::Revoke { worker, link_slot, task, why: RevokeWhy::Kill });
            }
        }
    }

    /// Has the worker of a running task killed, unless the task turns out to have ended.
    pub(super) fn condemn(
        &mut self,
        now: Now,
        worker: WorkerId,
        key: TaskKey,
        cause: KillCause,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.live_mut(worker) else { return };
        if entry.state == WorkerState::Killing || entry.condemned.is_some() {
            return;
        }
        // What is before it has been answered, whether that was read or not.
        let behind: Vec<(u16, TaskKey)> = entry
            .in_flight()
            .skip_while(|(_, occupant)| *occupant != Occupant::Task(key))
            .filter_map(|(link_slot, occupant)| match occupant {
                Occupant::Task(other) if other != key => Some((link_slot, other)),
                Occupant::Task(_) | Occupant::Revoked { .. } => None,
            })
            .collect();
        let condemned = Condemned { key, cause, pending: behind.len(), spared: false };
        entry.condemned = Some(condemned);
        if behind.is_empty() {
            self.execute(now, worker, condemned, outbox);
        }
        // From the newest to the oldest, so that the queue's front keeps the order of submission.
        for (link_slot, key) in behind.into_iter().rev() {
            let task = TaskRef { key, id: self.tasks[key.index()].id };
            outbox.push(Action::Revoke { worker, link_slot, task, why: RevokeWhy::Clear });
        }
    }

    /// One of the tasks behind a condemned one was taken back, or has begun.
    pub(super) fn cleared(
        &mut self,
        now: Now,
        worker: WorkerId,
        revoked: bool,
        outbox: &mut Outbox<T>,
    ) {
        let Some(condemned) = self.live_mut(worker).and_then(|entry| entry.condemned.as_mut())
        else {
            return;
        };
        condemned.pending -= 1;
        condemned.spared |= !revoked;
        if condemned.pending == 0 {
            let condemned = *condemned;
            self.execute(now, worker, condemned, outbox);
        }
    }

    fn execute(
        &mut self,
        now: Now,
        worker: WorkerId,
        condemned: Condemned,
        outbox: &mut Outbox<T>,
    ) {
        if let Some(entry) = self.live_mut(worker) {
            entry.condemned = None;
        }
        if condemned.spared {
            self.spare(now, worker, condemned.key, outbox);
        } else {
            let task = &self.tasks[condemned.key.index()];
            let (id, cause) = (task.id, condemned.cause);
            // Two attempts of one task never overlap. What is still there besides may have begun, if its worker lies.
            let again = (task.retries_left > 0 && cause != KillCause::Asked)
                || self.live(worker).is_some_and(|entry| {
                    entry.in_flight().any(|(_, occupant)| match occupant {
                        Occupant::Task(key) if key != condemned.key => {
                            self.tasks[key.index()].retries_left > 0
                        }
                        Occupant::Task(_) | Occupant::Revoked { .. } => false,
                    })
                });
            outbox.push(Action::Condemned { worker, task: id, cause });
            self.kill_now(worker, cause, !again && self.phase == Phase::Running, outbox);
        }
    }

    /// The task has ended, if what its worker says is true.
    fn spare(&mut self, now: Now, worker: WorkerId, key: TaskKey, outbox: &mut Outbox<T>) {
        let Some(entry) = self.live_mut(worker) else { return };
        let completed = entry.completed;
        match entry.spared {
            Some((at, since)) if at == completed => {
                if now.saturating_sub(since) >= ANSWERED_WITHIN {
                    return self.kill(worker, KillCause::Protocol, outbox);
                }
            }
            _ => entry.spared = Some((completed, now)),
        }
        let task = self.tasks.get(key.index()).map(|task| task.place);
        if matches!(task, Some(Place::Assigned { worker: at, .. }) if at == worker.slot) {
            self.set_timer(key, now.saturating_add(ANSWERED_WITHIN), outbox);
        }
    }

    /// The task has waited too long.
    pub(super) fn end_expired(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        self.counters.expired += 1;
        self.end_task(key, End::Expired, outbox);
    }
}

impl Terms {
    /// When to look at a task that has not begun: it may begin at any moment.
    fn due(&self, now: Now, submitted: Now) -> Option<Now> {
        let run_due = self.run_limit.map(|limit| now.saturating_add(limit));
        self.queue_due(submitted).into_iter().chain(run_due).min()
    }

    /// When the task has waited too long, if it may not wait for ever.
    fn queue_due(&self, submitted: Now) -> Option<Now> {
        let limit = self.queue_limit.filter(|_| !self.began)?;
        Some(submitted.saturating_add(limit))
    }
}
