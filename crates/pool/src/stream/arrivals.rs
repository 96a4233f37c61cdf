//! Wakes the consumers of a stream, which wait in a call or as a future.
//!
//! A consumer registers, looks again, and only then sleeps. Whoever makes something available
//! stores it first and wakes all registered consumers afterwards. So a consumer either sees it or
//! is woken.

use std::sync::Arc;

use crate::drive::Shared;
use crate::sync::{AtomicBool, Ordering};
use brigade_task::backend::{CompletionQueue, Sleeper, Wait};

/// Notifies the consumers of a stream.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Ids of finished tasks that the stream has not heard of.
    pub(super) completions: Arc<CompletionQueue>,
    /// `true` if there is an item to take, or none will come. Written under the stream's lock.
    ready: AtomicBool,
}

impl Arrivals {
    /// Publishes, under the stream's lock, if there is something for consumers. Returns `true` if
    /// they have to be notified, without the lock.
    #[must_use]
    pub(super) fn set_ready(&self, ready: bool) -> bool {
        !self.ready.swap(ready, Ordering::AcqRel) && ready
    }

    /// Wakes all consumers. May run their wakers.
    pub(super) fn notify(&self, shared: &Shared) {
        let woken = self.completions.wake();
        if woken.ring_doorbell {
            shared.ring_caller();
        }
        shared.run_wakers(woken.wakers);
    }
}

impl Wait for Arrivals {
    fn is_pending(&self) -> bool {
        self.completions.is_pending() && !self.ready.load(Ordering::Acquire)
    }

    fn set_sleeper(&self, sleeper: Sleeper) {
        self.completions.set_sleeper(sleeper);
    }

    fn clear_sleeper(&self) {
        self.completions.clear_sleeper();
    }
}
