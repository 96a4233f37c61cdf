//! Stands in for `timeline` in a build without the feature `trace-export`: there is none.

use brigade_scheduler::Event;
use brigade_sys::clock::Monotonic;
use brigade_wire::WorkerId;

use super::Drive;
use super::outcome::EventData;
use super::shared::{Core, Shared};
use crate::cell::TaskCell;
use crate::error::PoolError;

#[expect(clippy::unused_self, reason = "the signatures are those of `timeline`")]
impl Core {
    #[inline]
    pub(super) fn observe_event(
        &self,
        _now: Monotonic,
        _event: &Event<TaskCell>,
        _data: &EventData,
        _shared: &Shared,
    ) {
    }

    #[inline]
    pub(super) fn observe_queue(&self, _now: Monotonic, _shared: &Shared) {}
}

#[expect(clippy::unused_self, reason = "the signatures are those of `timeline`")]
impl Shared {
    pub(super) fn observe_order(&self, _worker: WorkerId, _at: Monotonic) {}

    pub(super) fn observe_ready(
        &self,
        _worker: WorkerId,
        _initializing: Option<Monotonic>,
        _at: Monotonic,
    ) {
    }

    pub(super) fn end_timeline(&self) {}
}

#[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as above")]
impl Drive {
    pub(super) fn start_timeline(&self) -> Result<(), PoolError> {
        Ok(())
    }
}
