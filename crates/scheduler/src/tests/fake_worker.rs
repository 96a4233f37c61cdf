//! A simulated worker, which takes frames in order.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use brigade_base::{Attempt, Monotonic, Revocation, TaskId, WorkerId};

use super::model::Data;
use crate::{
    Event, FailedItems, Failure, InterruptedAttempt, KillCause, Observation, Stage, Usage,
};

#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact that tests read")]
pub(super) struct FakeWorker {
    pub(super) id: WorkerId,
    pub(super) phase: FakePhase,
    pub(super) frames: VecDeque<Frame>,
    /// Messages that it has written and nobody has read.
    pub(super) mail: VecDeque<Event<Data>>,
    /// Frames whose outcomes are in its mail.
    pub(super) answered: VecDeque<Frame>,
    pub(super) stop_asked: bool,
    pub(super) doomed: bool,
    /// `true` if it is stopped by a signal: it does nothing, and only SIGKILL ends it.
    pub(super) frozen: bool,
    /// `true` if it has overwritten its table of states.
    pub(super) garbled: bool,
    /// `true` if it claims that all its tasks have started.
    pub(super) lies: bool,
    /// `true` if it was sent SIGTERM.
    pub(super) terminated: bool,
    /// The reason why the pool killed it.
    pub(super) cause: Option<KillCause>,
    /// The task because of which the pool killed it, if it is no chunk.
    pub(super) condemned: Option<TaskId>,
    /// Start of the time in which it was asked to stop and idle.
    pub(super) leaving_since: Option<Monotonic>,
    pub(super) idle_since: Option<Monotonic>,
    pub(super) ready_since: Option<Monotonic>,
    /// Number of tasks that it has started.
    pub(super) begun: u64,
    /// Time at which the current section of its task must have ended.
    pub(super) section: Option<Monotonic>,
    /// Time at which the scheduler next checks its section, as far as the worker knows.
    pub(super) told: Option<Monotonic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FakePhase {
    Starting,
    Ready,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) ring_index: u16,
    pub(super) id: TaskId,
    pub(super) attempt: Attempt,
    pub(super) state: FrameState,
    /// Set for a chunk.
    pub(super) items: Option<Progress>,
}

/// The items of a chunk that a worker has started and finished.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    pub(super) count: u32,
    pub(super) begun: u32,
    pub(super) finished: u32,
}

impl FakeWorker {
    pub(super) fn new(id: WorkerId) -> Self {
        Self {
            id,
            phase: FakePhase::Starting,
            frames: VecDeque::new(),
            mail: VecDeque::new(),
            answered: VecDeque::new(),
            stop_asked: false,
            doomed: false,
            frozen: false,
            garbled: false,
            lies: false,
            terminated: false,
            cause: None,
            condemned: None,
            leaving_since: None,
            idle_since: None,
            ready_since: None,
            begun: 0,
            section: None,
            told: None,
        }
    }

    /// Returns `true` if it exists and was not asked to stop.
    pub(super) fn stays(&self) -> bool {
        !self.stop_asked && !self.doomed
    }

    /// Returns `true` if its table of states is correct.
    pub(super) fn is_honest(&self) -> bool {
        !self.garbled && !self.lies
    }

    /// Tries to revoke a task, as the driver does.
    pub(super) fn revoke(&mut self, ring_index: u16, task: TaskId) -> Revocation {
        let answered = self.answered.iter().any(|frame| frame.id == task);
        let frames = &mut self.frames;
        let frame =
            frames.iter_mut().find(|frame| frame.ring_index == ring_index && frame.id == task);
        match frame.map(|frame| &mut frame.state) {
            _ if self.garbled => Revocation::Neither,
            Some(FrameState::Queued) if self.lies => Revocation::Begun,
            Some(state @ FrameState::Queued) => {
                *state = FrameState::Revoked;
                Revocation::Revoked
            }
            Some(FrameState::Running { .. }) => Revocation::Begun,
            None if answered => Revocation::Begun,
            Some(FrameState::Revoked) | None => Revocation::Neither,
        }
    }

    /// Looks a task up, as the driver does.
    pub(super) fn observe(&self, task: TaskId, now: Monotonic) -> Observation {
        // The state word of a finished task still says that it runs.
        let frame = self.frames.iter().chain(&self.answered).find(|it| it.id == task);
        let began = match frame.map(|frame| frame.state) {
            // The driver treats an unreadable state word as started.
            _ if self.garbled => Some(now),
            Some(FrameState::Running { since }) => Some(since),
            _ => None,
        };
        let used = |since| usage(now.saturating_since(since));
        let has_ended = self.is_honest() && self.answered.iter().any(|frame| frame.id == task);
        let stage = if has_ended { Stage::Ended } else { Stage::Runs };
        Observation { began, section: self.section, usage: began.map(used), stage }
    }

    /// Returns `true` if it has no frames, as far as the scheduler can know.
    pub(super) fn is_idle(&self) -> bool {
        self.phase == FakePhase::Ready && self.frames.is_empty() && self.mail.is_empty()
    }
}

impl Frame {
    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, FrameState::Running { .. })
    }

    /// Returns how far a task in the table of a dead worker had got. A chunk that the worker
    /// started without starting an item has not begun.
    pub(super) fn interrupted(
        &self,
        garbled: bool,
        failure: Option<Failure>,
    ) -> Option<InterruptedAttempt> {
        let ring_index = self.ring_index;
        let Some(items) = self.items else {
            return Some(InterruptedAttempt::of_task(ring_index));
        };
        let finished = items.finished;
        let in_item = garbled || items.begun > finished;
        let parts = parts_of(self.id);
        (in_item || finished > 0).then_some(InterruptedAttempt {
            ring_index,
            finished,
            in_item,
            parts,
            failed: failed_items(self.id, finished, failure),
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameState {
    Queued,
    Running { since: Monotonic },
    Revoked,
}

/// Returns a number of parts for items that come back: any, but always the same.
pub(super) fn parts_of(task: TaskId) -> u32 {
    u32::try_from(task.get() % 4).expect("below 4")
}

/// Returns `true` if an item fails when its worker fails its tasks.
pub(super) fn may_fail(item: u64) -> bool {
    !item.is_multiple_of(3)
}

/// Returns those of the finished items of a chunk that fail.
pub(super) fn failed_items(
    chunk: TaskId,
    finished: u32,
    failure: Option<Failure>,
) -> Vec<FailedItems> {
    let mut failed: Vec<FailedItems> = Vec::new();
    let Some(failure) = failure else { return failed };
    for first in (0..finished).filter(|index| may_fail(chunk.get() + u64::from(*index))) {
        match failed.last_mut().filter(|last| last.first + last.count.get() == first) {
            Some(last) => last.count = last.count.saturating_add(1),
            None => failed.push(FailedItems { first, count: NonZeroU32::MIN, failure }),
        }
    }
    failed
}

/// Returns the task whose end the event reports.
pub(super) fn answers(event: &Event<Data>) -> Option<TaskId> {
    match event {
        Event::Finished { task, .. } => Some(*task),
        Event::Returned(returned) => Some(returned.task),
        _ => None,
    }
}

/// Returns what a task has used after this time: all of it, and a byte for each nanosecond.
pub(super) fn usage(cpu: Duration) -> Usage {
    let memory = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
    Usage { cpu, is_new: false, memory }
}
