//! The scheduler's record of a worker slot.

use std::collections::VecDeque;
use std::mem;

use brigade_base::{Attempt, Escalation, Monotonic, TaskId, TimerKey, WorkerId};
use serde::{Deserialize, Serialize};

use crate::TaskKey;

/// A worker slot: its current process, and the frames that were sent to that process.
#[derive(Debug)]
pub(crate) struct WorkerEntry {
    /// The current worker. The generation is incremented for each process that is started in the
    /// slot.
    pub(crate) id: WorkerId,
    pub(crate) state: WorkerState,
    /// The round of the restart budget in which the worker was started.
    pub(crate) start_round: u64,
    /// `true` while a warm-up waits for a worker of this slot to become ready.
    pub(crate) awaited_by_warm_up: bool,
    /// The time at which it became idle.
    pub(crate) idle_since: Monotonic,
    /// The alarm for its maximum age.
    pub(crate) age_alarm: Option<TimerKey>,
    /// Set while the task that it runs is about to be killed. Nothing is sent to the worker then.
    pub(crate) pending_kill: Option<PendingKill>,
    /// Set while it has a task that must be its only one.
    pub(crate) is_reserved: bool,
    /// The value of `completed` when it was last spared, and the time of that.
    pub(crate) spared: Option<(u64, Monotonic)>,
    /// Number of tasks that this process has finished.
    pub(crate) completed: u64,
    /// The value of `completed` at the last rescue.
    pub(crate) completed_at_rescue: u64,
    /// `true` if it finished nothing between the last two rescues, nor since.
    pub(crate) stalled: bool,
    /// The reason why the pool killed this process, if it did.
    pub(crate) kill_cause: Option<KillCause>,
    /// The task because of which it was killed, the outcome of which does not count any more.
    pub(crate) condemned: Option<TaskKey>,
    /// Set if its death was reported and its process is not gone: `true` if it is replaced then.
    pub(crate) reported: Option<bool>,
    /// Set for a worker that was asked to stop and has nothing left to do.
    pub(crate) escalation: Option<Escalation<EndWorker, 2>>,
    /// The alarm for the next step of the escalation.
    pub(crate) stop_alarm: Option<TimerKey>,
    /// The alarm by which it has to skip a revoked frame, if it is not to be trusted.
    pub(crate) skip_alarm: Option<TimerKey>,
    /// Frames that were sent and not answered, oldest first. A worker answers in the order of
    /// sending.
    in_flight: VecDeque<Occupant>,
    /// Number of these frames that are revoked.
    revoked: usize,
    /// The position in the table of the next frame. Those of the others are before it, so none is
    /// used twice at a time.
    next: u16,
    /// Number of positions.
    credit: u16,
}

/// The content of a frame that was sent and not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occupant {
    Task(TaskKey),
    /// A revoked task, which the worker will skip and report.
    Revoked {
        id: TaskId,
        attempt: Attempt,
    },
}

/// The state of a worker as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerState {
    /// No process.
    Vacant,
    /// The process is being started; the handshake is not complete.
    Starting,
    /// Accepts tasks.
    Ready,
    /// Was asked to stop and gets no more tasks.
    Stopping,
    /// Was killed, and its death is not reported yet; or the process is not gone although it is.
    Killing,
}

/// The reason why the pool, or the kernel for it, killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillCause {
    /// The worker violated the protocol.
    Protocol,
    /// The pool is shut down.
    Shutdown,
    /// The worker was stopped by a signal while the pool waited for it.
    Stopped,
    /// Its task exceeded its hard deadline.
    Deadline,
    /// A section of its task exceeded its limit.
    Section,
    /// Its task exceeded a limit on a resource.
    Limit,
    /// Its task made a call that the sandbox forbids.
    Denied,
    /// A caller killed its task.
    Asked,
    /// The worker was no longer needed before it was ready.
    Unwanted,
}

/// A step that ends a worker which was asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndWorker {
    Terminate,
    Kill,
}

/// A task whose worker will be killed once no other task can start there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingKill {
    pub(crate) key: TaskKey,
    pub(crate) cause: KillCause,
    /// Number of revocations that are not answered yet.
    pub(crate) pending: usize,
    /// `true` if a task behind this one has started, so that this one has ended.
    pub(crate) spared: bool,
}

impl WorkerEntry {
    pub(crate) fn vacant(slot: u32) -> Self {
        Self {
            id: WorkerId { slot, generation: 0 },
            state: WorkerState::Vacant,
            start_round: 0,
            awaited_by_warm_up: false,
            idle_since: Monotonic::ZERO,
            age_alarm: None,
            pending_kill: None,
            is_reserved: false,
            spared: None,
            completed: 0,
            completed_at_rescue: 0,
            stalled: false,
            kill_cause: None,
            condemned: None,
            reported: None,
            escalation: None,
            stop_alarm: None,
            skip_alarm: None,
            in_flight: VecDeque::new(),
            revoked: 0,
            next: 0,
            credit: 0,
        }
    }

    /// Prepares the slot for a new process.
    pub(crate) fn begin_start(&mut self, credit: u16) -> WorkerId {
        debug_assert!(self.in_flight.is_empty());
        debug_assert!(self.age_alarm.is_none() && self.stop_alarm.is_none());
        debug_assert!(self.escalation.is_none() && self.skip_alarm.is_none());
        let id = WorkerId { generation: self.id.generation + 1, ..self.id };
        *self = Self {
            id,
            state: WorkerState::Starting,
            start_round: self.start_round,
            awaited_by_warm_up: self.awaited_by_warm_up,
            idle_since: self.idle_since,
            in_flight: mem::take(&mut self.in_flight),
            credit,
            ..Self::vacant(id.slot)
        };
        id
    }

    /// Returns `true` if it may be sent a task.
    #[inline]
    pub(crate) fn may_be_assigned(&self) -> bool {
        self.state == WorkerState::Ready && self.pending_kill.is_none() && !self.is_reserved
    }

    /// Returns `true` if it may be sent another task behind those that it has.
    #[inline]
    pub(crate) fn may_prefetch(&self) -> bool {
        self.may_be_assigned() && !self.stalled
    }

    /// Returns `true` if tasks that it has not started may be moved to other workers. This includes
    /// a stopping worker, which would otherwise have to run all tasks that it was sent.
    pub(crate) fn may_lose_tasks(&self) -> bool {
        self.is_at_work() && self.pending_kill.is_none()
    }

    /// Returns `true` if it has a task that it may answer.
    #[inline]
    pub(crate) fn is_at_work(&self) -> bool {
        self.is_busy() && self.tasks() > 0
    }

    /// Returns `true` if it has frames that it may answer, including revoked ones.
    #[inline]
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self.state, WorkerState::Ready | WorkerState::Stopping) && self.load() > 0
    }

    /// Returns the number of unanswered frames, including revoked ones.
    #[inline]
    pub(crate) fn load(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the number of assigned tasks.
    #[inline]
    pub(crate) fn tasks(&self) -> usize {
        self.in_flight.len() - self.revoked
    }

    /// Assigns a task and returns its position in the table.
    #[inline]
    pub(crate) fn push(&mut self, key: TaskKey) -> u16 {
        debug_assert!(self.in_flight.len() < usize::from(self.credit));
        let ring_index = self.next;
        self.in_flight.push_back(Occupant::Task(key));
        self.next = if ring_index + 1 < self.credit { ring_index + 1 } else { 0 };
        ring_index
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<Occupant> {
        self.in_flight.front().copied()
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) {
        if let Some(Occupant::Revoked { .. }) = self.in_flight.pop_front() {
            self.revoked -= 1;
        }
        // A task that must be alone was the only one.
        self.is_reserved = false;
    }

    /// Returns all unanswered frames with their positions in the table, oldest first.
    pub(crate) fn in_flight(&self) -> impl DoubleEndedIterator<Item = (u16, Occupant)> + '_ {
        self.in_flight
            .iter()
            .enumerate()
            .map(|(index, occupant)| (self.ring_index(index), *occupant))
    }

    /// Returns the unanswered frames that were not revoked, like [`in_flight`](Self::in_flight).
    pub(crate) fn assigned(&self) -> impl DoubleEndedIterator<Item = (u16, TaskKey)> {
        self.in_flight().filter_map(|(ring_index, occupant)| match occupant {
            Occupant::Task(key) => Some((ring_index, key)),
            Occupant::Revoked { .. } => None,
        })
    }

    /// Returns the unanswered frame at a position of the table.
    pub(crate) fn occupant(&self, ring_index: u16) -> Option<Occupant> {
        self.index_of(ring_index).map(|index| self.in_flight[index])
    }

    fn index_of(&self, ring_index: u16) -> Option<usize> {
        let credit = usize::from(self.credit);
        let behind_first = usize::from(ring_index) + credit - usize::from(self.ring_index(0));
        let index = if behind_first < credit { behind_first } else { behind_first - credit };
        (ring_index < self.credit && index < self.in_flight.len()).then_some(index)
    }

    pub(crate) fn mark_revoked(&mut self, ring_index: u16, id: TaskId, attempt: Attempt) {
        if let Some(index) = self.index_of(ring_index) {
            self.in_flight[index] = Occupant::Revoked { id, attempt };
            self.revoked += 1;
        }
    }

    /// Returns `true` if the worker has a revoked frame of this task.
    pub(crate) fn is_revoked(&self, task: TaskId) -> bool {
        let revoked = |it: &Occupant| matches!(it, Occupant::Revoked { id, .. } if *id == task);
        self.in_flight.iter().any(revoked)
    }

    /// Removes all unanswered frames, because the process is dead. Returns those that were not
    /// revoked, oldest first.
    pub(crate) fn take_assigned(&mut self) -> Vec<(u16, TaskKey)> {
        let all = self.assigned().collect();
        self.in_flight.clear();
        self.is_reserved = false;
        self.revoked = 0;
        all
    }

    /// Returns the table position of the frame at `index`, counted from the oldest one.
    #[expect(clippy::expect_used, reason = "there are at most as many frames as positions")]
    #[inline]
    fn ring_index(&self, index: usize) -> u16 {
        // Not a remainder, because a division takes long.
        let (next, before_next) = (usize::from(self.next), self.in_flight.len() - index);
        let wrapped = if next < before_next { usize::from(self.credit) } else { 0 };
        u16::try_from(next + wrapped - before_next).expect("below the credit, which is a u16")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_at_their_positions_and_nowhere_else() {
        const CREDIT: u16 = 10;
        let mut entry = WorkerEntry::vacant(0);
        entry.begin_start(CREDIT);
        for sent in 0..100_u16 {
            assert_eq!(entry.push(TaskKey::new(sent.into())), sent % CREDIT);
            let in_flight: Vec<_> = entry.in_flight().collect();
            for position in [0..2 * CREDIT, u16::MAX - CREDIT..u16::MAX].into_iter().flatten() {
                let there = in_flight.iter().find(|(ring_index, _)| *ring_index == position);
                assert_eq!(entry.occupant(position), there.map(|(_, occupant)| *occupant));
            }
            // From empty to full and back.
            let left = usize::from(sent % CREDIT);
            while entry.in_flight.len() > left {
                entry.pop_front();
            }
        }
    }
}
