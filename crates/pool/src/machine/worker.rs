//! A worker slot inside the machine.

use std::collections::VecDeque;

use brigade_wire::{Attempt, TaskId, WorkerId};
use serde::Serialize;

use super::limits::Condemned;
use super::{Now, TaskKey};

/// One worker slot: the process that fills it now, and the frames under way to that process.
#[derive(Debug)]
pub(super) struct WorkerEntry {
    /// The generation goes up with every process that is started for the slot.
    pub(super) id: WorkerId,
    pub(super) state: WorkerState,
    /// To which round of starts its start belongs.
    pub(super) start_round: u64,
    /// A warm-up waits for the slot's process to become ready, or for the next one.
    pub(super) to_warm: bool,
    /// Since when it has nothing to do.
    pub(super) idle_since: Now,
    /// When it is to be replaced because of its age.
    pub(super) retire_at: Option<Now>,
    /// Set while the task that it runs is about to be killed; nothing is sent to it then.
    pub(super) condemned: Option<Condemned>,
    /// Its answers when a condemned task of it was spared, and when that was.
    pub(super) spared: Option<(u64, Now)>,
    /// Tasks that only this slot may run, in the order of their submission.
    pub(super) reserved: VecDeque<TaskKey>,
    /// Tasks that this process has answered.
    pub(super) completed: u64,
    /// How many they were at the last rescue.
    pub(super) completed_at_rescue: u64,
    /// It had answered nothing between the last two rescues, and has not since.
    pub(super) stalled: bool,
    /// Why the pool killed this process, if it did.
    pub(super) kill_cause: Option<KillCause>,
    /// When the next rung of the ladder is due for a worker that was asked to leave.
    pub(super) stop_deadline: Option<Now>,
    /// What was sent and not answered, oldest first: a worker answers in the order of sending.
    in_flight: VecDeque<Occupant>,
    /// Of these, how many are revoked.
    revoked: usize,
    /// Counts what was sent; slot numbers in the table follow from it, so none is used twice at a time.
    sent: u64,
    credit: u16,
}

/// What a frame under way stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occupant {
    Task(TaskKey),
    /// Taken back; the worker will pass over it and say so.
    Revoked {
        id: TaskId,
        attempt: Attempt,
    },
}

/// The life of a worker's process as the machine sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerState {
    /// No process.
    Vacant,
    /// Spawn was asked for; the handshake is not done.
    Starting,
    /// Takes tasks.
    Ready,
    /// Was asked to leave and gets no more tasks; the next rung is SIGTERM, then SIGKILL.
    Stopping { terminated: bool },
    /// Was killed; its death has not been reported yet.
    Killing,
}

/// Why the pool killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum KillCause {
    /// It broke the protocol.
    Protocol,
    /// The pool shuts down.
    Shutdown,
    /// It was stopped by a signal while the pool waited for it.
    Stopped,
    /// Its task ran longer than it may.
    Deadline,
    /// A section of its task ran longer than it may.
    Section,
    /// Its task was killed by a caller.
    Asked,
    /// It had not started when it was no longer needed.
    Unwanted,
}

impl WorkerEntry {
    pub(super) fn vacant(slot: u32) -> Self {
        Self {
            id: WorkerId { slot, generation: 0 },
            state: WorkerState::Vacant,
            start_round: 0,
            to_warm: false,
            idle_since: Now::ZERO,
            retire_at: None,
            condemned: None,
            spared: None,
            reserved: VecDeque::new(),
            completed: 0,
            completed_at_rescue: 0,
            stalled: false,
            kill_cause: None,
            stop_deadline: None,
            in_flight: VecDeque::new(),
            revoked: 0,
            sent: 0,
            credit: 0,
        }
    }

    /// Makes the slot ready for a new process.
    pub(super) fn begin_start(&mut self, credit: u16) -> WorkerId {
        debug_assert!(self.in_flight.is_empty());
        self.id.generation += 1;
        self.state = WorkerState::Starting;
        self.retire_at = None;
        self.condemned = None;
        self.spared = None;
        self.completed = 0;
        self.completed_at_rescue = 0;
        self.stalled = false;
        self.kill_cause = None;
        self.stop_deadline = None;
        self.revoked = 0;
        self.sent = 0;
        self.credit = credit;
        self.id
    }

    /// Whether it may be sent another task.
    pub(super) fn takes_tasks(&self) -> bool {
        self.state == WorkerState::Ready && self.condemned.is_none()
    }

    /// Whether it may be sent another task behind those that it has.
    pub(super) fn takes_more_tasks(&self) -> bool {
        self.takes_tasks() && !self.stalled
    }

    /// Whether tasks that it has not begun may be given to others; also one that leaves has to do all that it was sent.
    pub(super) fn gives_tasks(&self) -> bool {
        self.is_at_work() && self.condemned.is_none()
    }

    /// Whether a task is under way to it that it may answer.
    pub(super) fn is_at_work(&self) -> bool {
        self.is_busy() && self.tasks() > 0
    }

    /// Whether frames are under way to it that it may answer, revoked ones included.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.state, WorkerState::Ready | WorkerState::Stopping { .. }) && self.load() > 0
    }

    /// Frames under way, revoked ones included.
    pub(super) fn load(&self) -> usize {
        self.in_flight.len()
    }

    /// Tasks under way.
    pub(super) fn tasks(&self) -> usize {
        self.in_flight.len() - self.revoked
    }

    /// Puts a task under way and says which slot of the table it gets.
    pub(super) fn push(&mut self, key: TaskKey) -> u16 {
        debug_assert!(self.in_flight.len() < usize::from(self.credit));
        let link_slot = self.link_slot(self.in_flight.len());
        self.in_flight.push_back(Occupant::Task(key));
        self.sent += 1;
        link_slot
    }

    pub(super) fn front(&self) -> Option<Occupant> {
        self.in_flight.front().copied()
    }

    pub(super) fn pop_front(&mut self) {
        if let Some(Occupant::Revoked { .. }) = self.in_flight.pop_front() {
            self.revoked -= 1;
        }
    }

    /// All that is under way with its slot, oldest first.
    pub(super) fn in_flight(&self) -> impl DoubleEndedIterator<Item = (u16, Occupant)> + '_ {
        self.in_flight
            .iter()
            .enumerate()
            .map(|(index, occupant)| (self.link_slot(index), *occupant))
    }

    /// What is under way in a slot of the table.
    pub(super) fn occupant(&self, link_slot: u16) -> Option<Occupant> {
        self.index_of(link_slot).map(|index| self.in_flight[index])
    }

    fn index_of(&self, link_slot: u16) -> Option<usize> {
        (0..self.in_flight.len()).find(|index| self.link_slot(*index) == link_slot)
    }

    pub(super) fn mark_revoked(&mut self, link_slot: u16, id: TaskId, attempt: Attempt) {
        if let Some(index) = self.index_of(link_slot) {
            self.in_flight[index] = Occupant::Revoked { id, attempt };
            self.revoked += 1;
        }
    }

    /// Whether a frame of this task is under way that the worker will pass over.
    pub(super) fn is_revoked(&self, task: TaskId) -> bool {
        let revoked = |it: &Occupant| matches!(it, Occupant::Revoked { id, .. } if *id == task);
        self.in_flight.iter().any(revoked)
    }

    /// Takes all that is under way out, oldest first: the process is dead.
    pub(super) fn take_in_flight(&mut self) -> Vec<(u16, Occupant)> {
        let all = self.in_flight().collect();
        self.in_flight.clear();
        self.revoked = 0;
        all
    }

    /// The slot of the frame at `index` from the oldest one on.
    fn link_slot(&self, index: usize) -> u16 {
        let sequence = self.sent - self.in_flight.len() as u64 + index as u64;
        u16::try_from(sequence % u64::from(self.credit)).expect("below the credit, which is a u16")
    }
}
