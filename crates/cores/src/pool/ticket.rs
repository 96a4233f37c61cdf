//! A place in the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CorePool;
use super::waiter::Waiter;
use crate::lease::CoreLease;
use crate::request::CoreRequest;

/// A place in the queue of a [`CorePool`](crate::CorePool), for those who cannot block. Dropping it leaves the queue.
#[must_use = "dropping a ticket leaves the queue"]
pub struct Ticket {
    pool: CorePool,
    waiter: Arc<Waiter>,
}

impl Ticket {
    pub(super) fn new(pool: CorePool, waiter: Arc<Waiter>) -> Self {
        Self { pool, waiter }
    }

    /// What is waited for.
    pub fn request(&self) -> CoreRequest {
        self.waiter.request
    }

    /// The cores, if they have been granted. They are given once: afterwards the ticket has nothing more to give. In a fork of
    /// the process it has nothing to give.
    pub fn try_take(&mut self) -> Option<CoreLease> {
        if self.pool.shared.is_copy() {
            return None;
        }
        let grant = self.waiter.try_take()?;
        Some(CoreLease::new(&self.pool.shared, self.waiter.request, grant))
    }

    /// Waits for the cores, but no longer than `timeout`. The place in the queue is kept. In a fork of the
    /// process it returns at once.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<CoreLease> {
        if self.pool.shared.is_copy() {
            return None;
        }
        // A time that is too far to be represented never comes.
        let grant = self.waiter.wait(Instant::now().checked_add(timeout))?;
        Some(CoreLease::new(&self.pool.shared, self.waiter.request, grant))
    }

    /// Waits for the cores as long as it takes.
    pub(super) fn wait(self) -> CoreLease {
        loop {
            if let Some(grant) = self.waiter.wait(None) {
                return CoreLease::new(&self.pool.shared, self.waiter.request, grant);
            }
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.pool.shared.is_copy() {
            return;
        }
        self.pool.shared.withdraw(&self.waiter);
        // Out of the queue it cannot be granted any more.
        if let Some(grant) = self.waiter.try_take() {
            self.pool.shared.give_back(&grant.taken);
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("request", &self.waiter.request).finish_non_exhaustive()
    }
}
