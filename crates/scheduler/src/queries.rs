//! Read-only queries of the driver.

use std::sync::Arc;

use brigade_base::{Attempt, WorkerId};

use crate::entry::EntryState;
use crate::{
    Counters, Grant, KillCause, Occupant, Scheduler, ShutdownReport, TaskData, TaskKey, TaskRef,
    WorkerEntry, WorkerState,
};

/// The state of a slot, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerStatus {
    /// It has no process.
    Vacant,
    /// Its process starts.
    Starting,
    /// Its worker waits for tasks.
    Idle,
    /// Its worker has tasks.
    Busy,
    /// Its worker is about to end.
    Stopping,
}

/// The content of the workers' links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// No brief task waits in a link.
    Empty,
    /// Brief tasks wait in a link.
    Filled,
    /// A link has got more of them because many more wait in the queue.
    Deep,
}

impl<T: TaskData> Scheduler<T> {
    /// Returns `true` if a task may be submitted now. Otherwise callers wait or give up.
    pub fn has_room(&self) -> bool {
        self.tasks.unassigned() < self.settings.queue_limit
    }

    /// Returns what a task that was sent to a worker has taken of the resources.
    pub fn granted(&self, key: TaskKey) -> Option<&Grant> {
        self.tasks.granted(key)
    }

    /// Returns the number of tasks that the queue has room for.
    pub fn room(&self) -> usize {
        self.settings.queue_limit.saturating_sub(self.tasks.unassigned())
    }

    /// Returns `true` if the pool accepts tasks: it is neither shut down nor broken.
    pub fn is_open(&self) -> bool {
        self.lifecycle.is_open()
    }

    /// Returns the reason why the pool is broken, if it is.
    pub fn broken_reason(&self) -> Option<Arc<str>> {
        self.lifecycle.broken_reason()
    }

    /// Returns `true` while a worker has not been ready since the last warm-up began.
    pub fn is_warming(&self) -> bool {
        self.warm_up.is_in_progress()
    }

    /// Returns the reason why the last warm-up was given up, if it was.
    pub fn not_warmed(&self) -> Option<Arc<str>> {
        self.warm_up.given_up()
    }

    /// Returns `true` if the shutdown has ended: no task and no process is left.
    pub fn has_ended(&self) -> bool {
        self.lifecycle.has_ended()
    }

    /// Returns the driver's data for a task.
    pub fn task(&self, key: TaskKey) -> Option<&T> {
        self.tasks.get(key).map(|entry| &entry.task)
    }

    /// Returns the unanswered assignments of a worker with their positions in its table.
    pub fn occupants(&self, worker: WorkerId) -> Vec<(u16, TaskRef, Attempt)> {
        let tasks = self.workers.live(worker).into_iter().flat_map(WorkerEntry::assigned);
        let of_task =
            |(ring_index, key)| (ring_index, self.tasks.reference(key), self.tasks.attempt(key));
        tasks.map(of_task).collect()
    }

    /// Returns the worker that a task is assigned to, the task's position in that worker's table,
    /// and the attempt.
    pub fn assignment(&self, task: TaskRef) -> Option<(WorkerId, u16, Attempt)> {
        let entry = self.tasks.find(task)?;
        match entry.state() {
            EntryState::Queued | EntryState::Reserved | EntryState::Paused => None,
            EntryState::Assigned { worker, ring_index } => {
                Some((self.workers[worker as usize].id, ring_index, self.tasks.attempt(task.key)))
            }
        }
    }

    /// Returns `true` if the outcome of the task that the worker runs does not count any more.
    pub fn is_condemned(&self, worker: WorkerId) -> bool {
        let entry = self.workers.live(worker);
        entry.is_some_and(|entry| entry.condemned.map(Occupant::Task) == entry.front())
    }

    /// Returns `true` if a slot has a process, or one in it is not gone.
    pub fn has_process(&self, slot: u32) -> bool {
        let worker = self.workers.iter().nth(slot as usize);
        worker.is_some_and(|worker| worker.state != WorkerState::Vacant)
    }

    /// Returns the number of accepted tasks that are not assigned.
    pub fn backlog(&self) -> usize {
        self.tasks.unassigned()
    }

    /// Returns the current number of workers that may have tasks at a time.
    pub fn workers_at_work(&self) -> usize {
        self.workers.at_work()
    }

    /// Returns the current maximum number of workers, including spare ones.
    pub fn target(&self) -> usize {
        self.workers.target()
    }

    /// Returns `true` if a worker was asked to stop, or killed, and still exists.
    pub fn is_losing_workers(&self) -> bool {
        let leaving = |worker: &WorkerEntry| {
            matches!(worker.state, WorkerState::Stopping | WorkerState::Killing)
                && worker.tasks() == 0
        };
        self.workers.iter().any(leaving)
    }

    /// Returns `true` if the worker that has the task is being killed.
    pub fn is_being_killed(&self, task: TaskRef) -> bool {
        let worker = self.assignment(task).and_then(|(worker, ..)| self.workers.live(worker));
        worker.is_some_and(|worker| worker.state == WorkerState::Killing)
    }

    /// Returns `true` if a worker is being killed for violating the protocol.
    pub fn has_broken_the_protocol(&self, worker: WorkerId) -> bool {
        self.workers
            .live(worker)
            .is_some_and(|worker| worker.kill_cause == Some(KillCause::Protocol))
    }

    /// Returns the task that a worker has to answer next.
    #[inline]
    pub fn due(&self, worker: WorkerId) -> Option<&T> {
        match self.workers.live(worker)?.front()? {
            Occupant::Task(key) => Some(&self.tasks[key].task),
            Occupant::Revoked { .. } => None,
        }
    }

    /// Returns `true` if workers run each task in a copy of themselves.
    pub fn runs_copies(&self) -> bool {
        self.settings.copies
    }

    /// Returns `false` if `Event::Balance` would change nothing: no worker has two tasks.
    #[inline]
    pub fn may_balance(&self) -> bool {
        self.tasks.pending() > 1
    }

    /// Returns the number of workers that have something to do.
    pub fn busy_workers(&self) -> usize {
        self.workers.busy()
    }

    /// Returns the number of accepted tasks without an outcome; items count one by one.
    #[inline]
    pub fn pending(&self) -> u64 {
        self.tasks.pending()
    }

    /// Returns all slots with their present or last workers.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, WorkerStatus)> + '_ {
        self.workers.iter().map(|worker| {
            let status = match worker.state {
                WorkerState::Vacant => WorkerStatus::Vacant,
                WorkerState::Starting => WorkerStatus::Starting,
                WorkerState::Ready if worker.load() == 0 => WorkerStatus::Idle,
                WorkerState::Ready => WorkerStatus::Busy,
                WorkerState::Stopping | WorkerState::Killing => WorkerStatus::Stopping,
            };
            (worker.id, status)
        })
    }

    /// Returns how many brief tasks the workers have behind those that they run, as far as it
    /// matters to a thread that waits for outcomes.
    pub fn links(&self) -> Links {
        if !self.run_times.are_brief() || self.workers.iter().all(|worker| worker.load() <= 1) {
            Links::Empty
        } else if self.has_deep_links() {
            Links::Deep
        } else {
            Links::Filled
        }
    }

    /// Returns `true` if tasks are usually so short that waking a thread for one takes longer.
    pub fn has_short_tasks(&self) -> bool {
        self.run_times.are_short()
    }

    /// Returns the number of workers that are ready for tasks.
    pub fn ready_workers(&self) -> usize {
        self.workers.ready()
    }

    /// Returns the counters since the pool was created.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the report of the shutdown so far. The driver sets the elapsed time.
    pub fn report(&self) -> ShutdownReport {
        let (now, before) = (self.counters, self.at_shutdown);
        ShutdownReport {
            finished: now.finished - before.finished,
            cancelled: now.cancelled - before.cancelled,
            failed: now.failed_by_death - before.failed_by_death,
            killed: now.killed - before.killed,
            ..self.lifecycle.report()
        }
    }
}
