//! The executor's decisions as a pure state machine.
//!
//! `handle(now, event, outbox)` is the only way in: no clock, no thread and no input or output
//! in here. Whoever drives the machine carries out what the outbox asks for and reports what
//! came of it as further events. That makes every decision testable without a process, and a
//! recorded sequence of events replays to the same decisions.
//!
//! A task is in exactly one place at every moment:
//!
//! ```text
//! Submit --> queued --Send--> assigned --(worker begins)--> running --Finished--> done
//!              ^                  |                              |
//!              |<---- revoked ----+<-------- worker died --------+
//! ```
//!
//! The machine does not hear when a worker begins a task (that would cost a message); it asks
//! by `Action::Revoke`, which the driver answers from the state words that host and worker share.

mod assign;
mod event;
mod outbox;
mod queries;
mod queue;
mod respawn;
mod sanity;
mod settings;
mod shutdown;
mod task;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use brigade_wire::{Attempt, TaskId, WorkerId};
use slab::Slab;

pub(crate) use event::{Event, StartFailure, Submission};
pub(crate) use outbox::{Action, End, Outbox, RevokeWhy};
use queue::Queue;
use respawn::RestartBudget;
pub(crate) use settings::{Counters, Settings};
pub use shutdown::Shutdown;
use shutdown::{Phase, Tally};
use task::{Place, TaskEntry};
pub(crate) use task::{TaskKey, TaskRef};
pub(crate) use worker::KillCause;
use worker::{Occupant, WorkerEntry, WorkerState};

/// A point on the monotonic clock, counted from that clock's own zero.
pub(crate) type Now = Duration;

/// See the module's documentation. `T` is what the driver attaches to a task.
#[derive(Debug)]
pub(crate) struct Machine<T> {
    settings: Settings,
    tasks: Slab<TaskEntry<T>>,
    queue: Queue,
    workers: Vec<WorkerEntry>,
    /// Slots whose worker is ready and has nothing to do; the last one used comes first, its caches are warm.
    idle: Vec<u32>,
    /// Every slot has a worker that is ready, so none is to be started.
    complete: bool,
    phase: Phase,
    tally: Tally,
    broken: Option<Arc<str>>,
    /// All workers are wanted, whether there is work or not.
    warming: bool,
    /// Why the last warm-up was given up.
    not_warmed: Option<Arc<str>>,
    budget: RestartBudget,
    /// What a task usually takes, which decides how deep to prefetch.
    usual_run: Duration,
    /// The worker that got the last task.
    current: usize,
    /// When to look whether workers with several short tasks make progress.
    rescue_at: Option<Now>,
    counters: Counters,
}

impl<T> Machine<T> {
    pub(crate) fn new(settings: Settings) -> Self {
        let workers = (0..settings.workers)
            .map(|slot| WorkerEntry::vacant(u32::try_from(slot).expect("slots are few")))
            .collect();
        let budget = RestartBudget::new(settings.restart_limit, settings.restart_window);
        Self {
            settings,
            tasks: Slab::new(),
            queue: Queue::default(),
            workers,
            idle: Vec::new(),
            complete: false,
            phase: Phase::Running,
            tally: Tally::default(),
            broken: None,
            warming: false,
            not_warmed: None,
            budget,
            // Unknown yet: as if long, so that nothing is prefetched behind a first task that takes minutes.
            usual_run: Duration::from_secs(1),
            current: 0,
            rescue_at: None,
            counters: Counters::default(),
        }
    }

    /// The one way in. `outbox` gets what is to be done, in order.
    pub(crate) fn handle(&mut self, now: Now, event: Event<T>, outbox: &mut Outbox<T>) {
        match event {
            Event::Submit(submission) => self.submit(now, submission, outbox),
            Event::Cancel(task) => self.cancel(task, outbox),
            Event::RevokeAnswer { task, worker, why, revoked } => {
                self.revoke_answer(now, task, worker, why, revoked, outbox);
            }
            Event::Finished { worker, task, attempt, run_time } => {
                self.finished(now, worker, task, attempt, run_time, outbox);
            }
            Event::Skipped { worker, task, attempt } => {
                self.skipped(now, worker, task, attempt, outbox);
            }
            Event::Balance => self.balance(now, outbox),
            other => self.handle_lifecycle(now, other, outbox),
        }
    }

    /// What happens to workers and to the pool, seldom as compared to tasks.
    fn handle_lifecycle(&mut self, now: Now, event: Event<T>, outbox: &mut Outbox<T>) {
        self.complete = false;
        match event {
            Event::WarmUp => self.warm_up(now, outbox),
            Event::Ready { worker } => self.ready(now, worker, outbox),
            Event::StartFailed { worker, failure } => {
                self.start_failed(now, worker, &failure, outbox);
            }
            Event::Misbehaved { worker } => self.kill(worker, KillCause::Protocol, outbox),
            Event::Died { worker, ran } => self.died(now, worker, &ran, outbox),
            Event::FoundStopped { worker } => self.kill(worker, KillCause::Stopped, outbox),
            Event::Shutdown { mode, timeout } => self.begin_shutdown(now, mode, timeout, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Submit(_)
            | Event::Cancel(_)
            | Event::RevokeAnswer { .. }
            | Event::Finished { .. }
            | Event::Skipped { .. }
            | Event::Balance => unreachable!("handled before"),
        }
        self.balance(now, outbox);
        self.complete = self.ready_workers() == self.workers.len();
    }

    fn submit(&mut self, now: Now, submission: Submission<T>, outbox: &mut Outbox<T>) {
        let Submission { id, task, attempt, retries } = submission;
        if let Some(end) = self.refusal() {
            outbox.push(Action::Complete { task, attempt, end });
            return;
        }
        self.counters.submitted += 1;
        let key = TaskKey::new(self.tasks.insert(TaskEntry::new(id, task, attempt, retries)));
        self.queue.push_back(&mut self.tasks, key);
        outbox.push(Action::Accepted { task: TaskRef { key, id } });
        self.assign(now, outbox);
    }

    fn refusal(&self) -> Option<End> {
        if self.broken.is_some() {
            Some(End::Broken)
        } else if self.phase != Phase::Running {
            Some(End::Closed)
        } else {
            None
        }
    }

    fn cancel(&mut self, task: TaskRef, outbox: &mut Outbox<T>) {
        let Some(entry) = self.tasks.get(task.key.index()).filter(|entry| entry.id == task.id)
        else {
            return;
        };
        match entry.place {
            Place::Queued => {
                self.queue.remove(&mut self.tasks, task.key);
                self.counters.cancelled += 1;
                self.tally.cancelled += u64::from(self.phase != Phase::Running);
                self.end_task(task.key, End::Cancelled, outbox);
            }
            Place::Assigned { worker, link_slot } => {
                let worker = self.workers[worker as usize].id;
                outbox.push(Action::Revoke { worker, link_slot, task, why: RevokeWhy::Cancel });
            }
        }
    }

    fn revoke_answer(
        &mut self,
        now: Now,
        task: TaskRef,
        worker: WorkerId,
        why: RevokeWhy,
        revoked: bool,
        outbox: &mut Outbox<T>,
    ) {
        if !revoked {
            return;
        }
        let Some((holder, link_slot, attempt)) = self.assignment(task) else {
            return;
        };
        if holder != worker {
            return;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.mark_revoked(link_slot, task.id, attempt);
        match why {
            RevokeWhy::Cancel => {
                self.counters.cancelled += 1;
                self.tally.cancelled += u64::from(self.phase != Phase::Running);
                self.end_task(task.key, End::Cancelled, outbox);
                self.settle(now, outbox);
            }
            RevokeWhy::Break => {
                self.counters.refused_by_break += 1;
                self.end_task(task.key, End::Broken, outbox);
                self.settle(now, outbox);
            }
            RevokeWhy::Steal => {
                self.counters.stolen += 1;
                self.queue.push_front(&mut self.tasks, task.key);
                self.assign(now, outbox);
            }
        }
    }

    fn finished(
        &mut self,
        now: Now,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        run_time: Duration,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return;
        };
        let Some(Occupant::Task(key)) = entry.front() else {
            self.kill(worker, KillCause::Protocol, outbox);
            return;
        };
        let task = &self.tasks[key.index()];
        if task.id != id || task.attempt != attempt {
            self.kill(worker, KillCause::Protocol, outbox);
            return;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.pop_front();
        entry.completed += 1;
        self.counters.finished += 1;
        self.tally.finished += u64::from(self.phase != Phase::Running);
        self.learn_run_time(run_time);
        self.end_task(key, End::Reported, outbox);
        self.after_answer(now, worker.slot, outbox);
    }

    fn skipped(
        &mut self,
        now: Now,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        outbox: &mut Outbox<T>,
    ) {
        let Some(entry) = self.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return;
        };
        match entry.front() {
            Some(Occupant::Revoked { id: expected, attempt: at })
                if expected == id && at == attempt =>
            {
                entry.pop_front();
                self.after_answer(now, worker.slot, outbox);
            }
            _ => self.kill(worker, KillCause::Protocol, outbox),
        }
    }

    /// A worker has room again: give it work, or see whether everything is done.
    fn after_answer(&mut self, now: Now, slot: u32, outbox: &mut Outbox<T>) {
        let entry = &self.workers[slot as usize];
        if entry.state == WorkerState::Ready && entry.load() == 0 {
            self.idle.push(slot);
        }
        self.assign(now, outbox);
        self.settle(now, outbox);
    }

    fn ready(&mut self, now: Now, worker: WorkerId, outbox: &mut Outbox<T>) {
        let Some(entry) = self.live_mut(worker) else {
            return;
        };
        if entry.state != WorkerState::Starting {
            return;
        }
        entry.state = WorkerState::Ready;
        self.idle.push(worker.slot);
        self.budget.a_worker_started();
        self.warming &= self.ready_workers() < self.workers.len();
        self.assign(now, outbox);
        self.settle(now, outbox);
    }

    /// The entry of a worker, unless the slot has gone on to another generation.
    fn live(&self, worker: WorkerId) -> Option<&WorkerEntry> {
        self.workers
            .get(worker.slot as usize)
            .filter(|entry| entry.id == worker && entry.state != WorkerState::Vacant)
    }

    fn live_mut(&mut self, worker: WorkerId) -> Option<&mut WorkerEntry> {
        self.workers
            .get_mut(worker.slot as usize)
            .filter(|entry| entry.id == worker && entry.state != WorkerState::Vacant)
    }

    /// Takes a task out of the machine, with its outcome.
    fn end_task(&mut self, key: TaskKey, end: End, outbox: &mut Outbox<T>) {
        let entry = self.tasks.remove(key.index());
        outbox.push(Action::Complete { task: entry.task, attempt: entry.attempt, end });
    }
}
