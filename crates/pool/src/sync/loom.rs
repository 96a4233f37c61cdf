//! Stands in for the parker of `brigade_sys::nearby` in the models.

use std::time::Instant;

use brigade_task::backend::sync::{Thread, ThreadId, current, park};

/// Parks a thread by its own token.
#[derive(Debug, Clone)]
pub(crate) struct Parker(Thread);

impl Parker {
    pub(crate) fn new(_is_nearby: bool) -> Self {
        Self(current())
    }

    pub(crate) fn thread(&self) -> ThreadId {
        self.0.id()
    }

    pub(crate) fn park(&self, deadline: Option<Instant>) {
        assert!(deadline.is_none(), "models wait without a deadline");
        park();
    }

    pub(crate) fn unpark(&self) {
        self.0.unpark();
    }
}
