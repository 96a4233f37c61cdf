//! Stands in for `recording` in a build without the feature: nothing is recorded.

use brigade_scheduler::{Scheduler, TaskEnd};
use brigade_sys::clock::{self, Monotonic};
use brigade_wire::{Attempt, WorkerId};

use super::outcome::EventData;
use crate::cell::TaskCell;
use crate::payload::Outcome;

pub(super) struct Recording;

#[expect(dead_code, reason = "the fields are those of `recording`")]
pub(super) struct End<'a> {
    pub(super) task: &'a TaskCell,
    pub(super) attempt: Attempt,
    pub(super) way: TaskEnd,
    pub(super) items: u32,
    pub(super) submitted: Monotonic,
    pub(super) ran: Option<Ran>,
    pub(super) outcome: &'a Outcome,
}

#[derive(Clone, Copy)]
pub(super) enum Ran {}

impl Ran {
    #[inline]
    pub(super) fn of(_data: &EventData, _end: TaskEnd) -> Option<Self> {
        None
    }
}

#[expect(clippy::unused_self, reason = "the signatures are those of `recording`")]
impl Recording {
    pub(super) fn new(_now: Monotonic) -> Self {
        Self
    }

    #[inline]
    pub(super) fn stamp(&mut self, _task: &TaskCell, exact: bool) -> Monotonic {
        if exact { clock::now() } else { clock::last_tick() }
    }

    #[inline]
    pub(super) fn accepted(&mut self, _task: &TaskCell) {}

    #[inline]
    pub(super) fn record_accepted(&mut self, _now: Monotonic, _scheduler: &Scheduler<TaskCell>) {}

    #[inline]
    pub(super) fn sent(&mut self, _worker: WorkerId, _bytes: usize) {}

    #[inline]
    pub(super) fn ended(&mut self, _now: Monotonic, _end: &End<'_>) {}

    pub(super) fn worker_started(&mut self, _now: Monotonic, _worker: WorkerId) {}

    pub(super) fn worker_ready(
        &mut self,
        _now: Monotonic,
        _worker: WorkerId,
        _initializing: Option<Monotonic>,
    ) {
    }

    pub(super) fn worker_leaving(&mut self, _now: Monotonic, _worker: WorkerId) {}

    pub(super) fn worker_gone(&mut self, _now: Monotonic, _worker: WorkerId, _died: bool) {}
}
