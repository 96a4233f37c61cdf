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
mod balance;
mod crew;
mod event;
mod limits;
mod outbox;
mod queries;
mod queue;
mod respawn;
mod revoke;
mod sanity;
mod settings;
mod shutdown;
mod task;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use brigade_timer::TimerHeap;
use brigade_wire::{Attempt, TaskId, WorkerId};
use slab::Slab;

use balance::RescuePlan;
pub(crate) use event::{Event, Observation, StartFailure, Submission};
pub(crate) use outbox::{Action, End, Outbox, RevokeWhy};
use queue::Queue;
use respawn::RestartBudget;
pub(crate) use settings::{Counters, Settings};
pub use shutdown::Shutdown;
use shutdown::{Phase, Tally};
use task::{Place, TaskEntry};
pub(crate) use task::{TaskKey, TaskRef, Terms};
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
    /// By slot; those from `target` on are not to be filled again.
    workers: Vec<WorkerEntry>,
    /// The most workers.
    target: usize,
    /// Tasks that wait for a worker of their own.
    reserved: usize,
    /// Slots whose worker is ready and has nothing to do; the last one used comes first, its caches are warm.
    idle: Vec<u32>,
    /// Every slot has a worker that is ready, so none is to be started.
    complete: bool,
    phase: Phase,
    tally: Tally,
    broken: Option<Arc<str>>,
    /// No worker is wanted until there is work.
    quiescent: bool,
    /// All workers are wanted, whether there is work or not.
    warming: bool,
    /// Why the last warm-up was given up.
    not_warmed: Option<Arc<str>>,
    budget: RestartBudget,
    /// What a task usually takes, which decides how deep to prefetch.
    usual_run: Duration,
    /// Runs in a row that were much longer.
    long_runs: u8,
    /// The worker that got the last task.
    current: usize,
    /// When to check whether workers with several tasks make progress.
    rescue: Option<RescuePlan>,
    /// When to look at tasks that have limits.
    timers: TimerHeap<TaskKey>,
    /// Until when the driver sleeps, as far as is known.
    armed: Option<Now>,
    counters: Counters,
}

impl<T> Machine<T> {
    pub(crate) fn new(settings: Settings) -> Self {
        let workers = (0..settings.workers)
            .map(|slot| WorkerEntry::vacant(u32::try_from(slot).expect("slots are few")))
            .collect();
        let budget = RestartBudget::new(settings.restart_limit, settings.restart_window);
        Self {
            target: settings.workers,
            settings,
            tasks: Slab::new(),
            queue: Queue::default(),
            workers,
            reserved: 0,
            idle: Vec::new(),
            complete: false,
            phase: Phase::Running,
            tally: Tally::default(),
            broken: None,
            quiescent: false,
            warming: false,
            not_warmed: None,
            budget,
            // Unknown yet: as if long, so that nothing is prefetched behind a first task that takes minutes.
            usual_run: Duration::from_secs(1),
            long_runs: 0,
            current: 0,
            rescue: None,
            timers: TimerHeap::new(),
            armed: None,
            counters: Counters::default(),
        }
    }

    /// The one way in. `outbox` gets what is to be done, in order.
    pub(crate) fn handle(&mut self, now: Now, event: Event<T>, outbox: &mut Outbox<T>) {
        match event {
            Event::Submit(submission) => self.submit(now, submission, outbox),
            Event::Cancel(task) => self.cancel(now, task, outbox),
            Event::Kill(task) => self.kill_task(now, task, outbox),
            Event::Observed { task, seen } => self.observed(now, task, *seen, outbox),
            Event::SectionBegun { worker, link_slot, due } => {
                self.section_begun(worker, link_slot, due, outbox);
            }
            Event::RevokeAnswer { task, worker, link_slot, why, found } => {
                self.revoke_answer(now, task, (worker, link_slot), why, found, outbox);
            }
            Event::Finished { worker, task, attempt, run_time, worn } => {
                if self.finished(worker, task, attempt, run_time, outbox) {
                    if worn {
                        self.retire(now, worker, "it uses more memory than it may", outbox);
                    }
                    self.after_answer(now, worker.slot, outbox);
                }
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
            Event::Resize { workers } => self.resize(now, workers, outbox),
            Event::Quiesce => self.quiesce(now, outbox),
            Event::Ready { worker } => self.ready(now, worker, outbox),
            Event::StartFailed { worker, failure } => {
                self.start_failed(now, worker, &failure, outbox);
            }
            Event::Misbehaved { worker } => self.kill(worker, KillCause::Protocol, outbox),
            Event::Died { worker, ran } => self.died(now, worker, &ran, outbox),
            Event::FoundStopped { worker } => self.kill(worker, KillCause::Stopped, outbox),
            Event::Shutdown { mode, timeout } => self.begin_shutdown(now, mode, timeout, outbox),
            Event::Tick => self.tick(now, outbox),
            Event::Break { reason } => {
                self.break_pool(reason, outbox);
                self.settle(now, outbox);
            }
            Event::Submit(_)
            | Event::Cancel(_)
            | Event::Kill(_)
            | Event::Observed { .. }
            | Event::SectionBegun { .. }
            | Event::RevokeAnswer { .. }
            | Event::Finished { .. }
            | Event::Skipped { .. }
            | Event::Balance => unreachable!("handled before"),
        }
        self.balance(now, outbox);
        if self.has_demand() {
            self.spawn_for_demand(now, outbox);
        }
        self.complete = self.ready_workers() == self.target;
        self.rearm_for_next(outbox);
    }

    fn submit(&mut self, now: Now, submission: Submission<T>, outbox: &mut Outbox<T>) {
        if let Some(end) = self.refusal() {
            let Submission { task, attempt, .. } = submission;
            outbox.push(Action::Complete { task, attempt, end });
            return;
        }
        self.counters.submitted += 1;
        // An item of a map comes back as a task of its own.
        self.counters.retried += u64::from(submission.attempt != Attempt::first());
        self.quiescent = false;
        let id = submission.id;
        let has_terms = submission.terms.is_some();
        let key = TaskKey::new(self.tasks.insert(TaskEntry::new(now, submission)));
        outbox.push(Action::Accepted { task: TaskRef { key, id } });
        if has_terms {
            self.queue_with_terms(key, outbox);
        } else {
            self.queue.push_back(&mut self.tasks, key);
        }
        self.assign(now, outbox);
    }

    fn queue_with_terms(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        match self.tasks[key.index()].slot() {
            None => self.queue.push_back(&mut self.tasks, key),
            Some(slot) if (slot as usize) < self.target => {
                self.tasks[key.index()].place = Place::Reserved;
                self.workers[slot as usize].reserved.push_back(key);
                self.reserved += 1;
                self.complete = false;
            }
            Some(_) => {
                self.counters.cancelled += 1;
                return self.end_task(key, End::Cancelled, outbox);
            }
        }
        self.watch_waiting(key, outbox);
    }

    /// The driver is to wake up at `due`, if it would sleep longer.
    fn rearm_for(&mut self, due: Now, outbox: &mut Outbox<T>) {
        if self.armed.is_none_or(|armed| due < armed) {
            self.armed = Some(due);
            outbox.push(Action::Rearm);
        }
    }

    /// After a change of the workers: what is due when depends on all of them.
    fn rearm_for_next(&mut self, outbox: &mut Outbox<T>) {
        if let Some(due) = self.next_deadline() {
            self.rearm_for(due, outbox);
        }
    }

    /// When `Tick` is due next, if ever. The driver sleeps until then, or until `Action::Rearm`.
    pub(crate) fn arm(&mut self) -> Option<Now> {
        self.armed = self.next_deadline();
        self.armed
    }

    /// Until when the driver may sleep, as far as is known: its last `arm`, or later if what was due has been done.
    pub(crate) fn armed(&self) -> Option<Now> {
        self.armed
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

    /// False when the answer did not count.
    fn finished(
        &mut self,
        worker: WorkerId,
        id: TaskId,
        attempt: Attempt,
        run_time: Duration,
        outbox: &mut Outbox<T>,
    ) -> bool {
        let Some(entry) = self.live_mut(worker) else {
            self.counters.stale_replies += 1;
            return false;
        };
        let Some(Occupant::Task(key)) = entry.front() else {
            self.kill(worker, KillCause::Protocol, outbox);
            return false;
        };
        let task = &self.tasks[key.index()];
        if task.id != id || task.attempt != attempt {
            self.kill(worker, KillCause::Protocol, outbox);
            return false;
        }
        let entry = &mut self.workers[worker.slot as usize];
        entry.pop_front();
        entry.completed += 1;
        entry.stalled = false;
        self.counters.finished += 1;
        self.tally.finished += u64::from(self.phase != Phase::Running);
        self.learn_run_time(run_time);
        self.end_task(key, End::Reported, outbox);
        true
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
        if self.workers[slot as usize].load() == 0 {
            self.has_nothing_to_do(now, slot, outbox);
        } else {
            self.comes_first(slot, outbox);
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
        self.inspect_soon(now, outbox);
        self.budget.a_worker_started();
        self.workers[worker.slot as usize].to_warm = false;
        self.is_still_warming();
        let retire_at = self.end_of_life(now, worker);
        self.workers[worker.slot as usize].retire_at = retire_at;
        if let Some(due) = retire_at {
            self.rearm_for(due, outbox);
        }
        self.has_nothing_to_do(now, worker.slot, outbox);
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

    fn end_cancelled(&mut self, key: TaskKey, outbox: &mut Outbox<T>) {
        self.counters.cancelled += 1;
        self.tally.cancelled += u64::from(self.phase != Phase::Running);
        self.end_task(key, End::Cancelled, outbox);
    }

    /// Takes a task out of the machine, with its outcome.
    fn end_task(&mut self, key: TaskKey, end: End, outbox: &mut Outbox<T>) {
        self.disarm(key);
        let entry = self.tasks.remove(key.index());
        outbox.push(Action::Complete { task: entry.task, attempt: entry.attempt, end });
    }
}
