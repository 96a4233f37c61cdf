//! What the driver may ask the machine; nothing in here changes anything.

use std::sync::Arc;
use std::time::Duration;

use brigade_wire::{Attempt, WorkerId};

use super::task::Place;
use super::{
    Counters, KillCause, Machine, Now, Occupant, Phase, Tally, TaskKey, TaskRef, WorkerEntry,
    WorkerState,
};

impl<T> Machine<T> {
    /// Whether `Submit` may be handled now; if not, callers wait or give up.
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() + self.reserved < self.settings.queue_limit
    }

    /// Whether `Submit` will ever be handled again.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Running && self.broken.is_none()
    }

    /// Why the pool is broken, if it is.
    pub(crate) fn broken_reason(&self) -> Option<Arc<str>> {
        self.broken.clone()
    }

    /// Whether a worker is still to become ready since the last warm-up began.
    pub(crate) fn is_warming(&self) -> bool {
        self.warming
    }

    /// Why not all workers could be had at the last warm-up, if so.
    pub(crate) fn not_warmed(&self) -> Option<Arc<str>> {
        self.not_warmed.clone()
    }

    /// Whether shutdown has ended: no task and no process is left.
    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// What the driver attached to a task.
    pub(crate) fn task(&self, key: TaskKey) -> Option<&T> {
        self.tasks.get(key.index()).map(|entry| &entry.task)
    }

    /// The task and attempt in a slot of a worker's table, as far as it has not been answered.
    pub(crate) fn occupants(&self, worker: WorkerId) -> Vec<(u16, TaskRef, Attempt)> {
        self.live(worker).map_or_else(Vec::new, |entry| {
            entry
                .in_flight()
                .filter_map(|(link_slot, occupant)| match occupant {
                    Occupant::Task(key) => {
                        let task = &self.tasks[key.index()];
                        Some((link_slot, TaskRef { key, id: task.id }, task.attempt))
                    }
                    Occupant::Revoked { .. } => None,
                })
                .collect()
        })
    }

    /// Where a task is assigned: the worker and its slot in that worker's table.
    pub(crate) fn assignment(&self, task: TaskRef) -> Option<(WorkerId, u16, Attempt)> {
        let entry = self.tasks.get(task.key.index()).filter(|entry| entry.id == task.id)?;
        match entry.place {
            Place::Queued | Place::Reserved => None,
            Place::Assigned { worker, link_slot } => {
                Some((self.workers[worker as usize].id, link_slot, entry.attempt))
            }
        }
    }

    /// Accepted tasks that are not with a worker.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.len() + self.reserved
    }

    /// The most workers at present.
    pub(crate) fn target(&self) -> usize {
        self.target
    }

    /// Whether a worker was asked to leave, or killed, and is still there.
    pub(crate) fn is_losing_workers(&self) -> bool {
        let leaving = |worker: &WorkerEntry| {
            matches!(worker.state, WorkerState::Stopping { .. } | WorkerState::Killing)
                && worker.tasks() == 0
        };
        self.workers.iter().any(leaving)
    }

    /// Whether the worker that has the task is being killed.
    pub(crate) fn is_being_killed(&self, task: TaskRef) -> bool {
        let worker = self.assignment(task).and_then(|(worker, ..)| self.live(worker));
        worker.is_some_and(|worker| worker.state == WorkerState::Killing)
    }

    /// Whether a worker is being killed for what it sent.
    pub(crate) fn has_broken_the_protocol(&self, worker: WorkerId) -> bool {
        self.live(worker).is_some_and(|worker| worker.kill_cause == Some(KillCause::Protocol))
    }

    /// The task that a worker has to answer next.
    #[inline]
    pub(crate) fn due(&self, worker: WorkerId) -> Option<&T> {
        match self.live(worker)?.front()? {
            Occupant::Task(key) => Some(&self.tasks[key.index()].task),
            Occupant::Revoked { .. } => None,
        }
    }

    /// All tasks that a worker has not answered, as far as that was read.
    pub(crate) fn under_way(&self, worker: WorkerId) -> impl Iterator<Item = &T> {
        let frames = self.live(worker).into_iter().flat_map(WorkerEntry::in_flight);
        frames.filter_map(|(_, occupant)| match occupant {
            Occupant::Task(key) => Some(&self.tasks[key.index()].task),
            Occupant::Revoked { .. } => None,
        })
    }

    /// Workers that have something to do.
    pub(crate) fn busy_workers(&self) -> usize {
        self.workers.iter().filter(|worker| worker.load() > 0).count()
    }

    /// Workers that are ready for tasks.
    pub(crate) fn ready_workers(&self) -> usize {
        self.workers.iter().filter(|worker| worker.state == WorkerState::Ready).count()
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// When `Tick` is due next, if ever.
    pub(crate) fn next_deadline(&self) -> Option<Now> {
        let workers = self.workers.iter().filter_map(|worker| worker.stop_deadline);
        let respawn = self.respawn_due();
        let timer = self.timers.next_deadline().map(Duration::from_nanos);
        workers
            .chain(self.shutdown_deadlines())
            .chain(respawn)
            .chain(self.rescue.as_ref().map(|plan| plan.due))
            .chain(timer)
            .chain(self.retirement_due())
            .min()
    }
}
