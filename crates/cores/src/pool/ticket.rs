//! A position in the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::CorePool;
use super::waiter::Waiter;
use crate::lease::CoreLease;
use crate::request::CoreRequest;

/// A position in the queue of a [`CorePool`](crate::CorePool), for callers that cannot block.
/// Dropping it leaves the queue.
#[must_use = "dropping a ticket leaves the queue"]
pub struct Ticket {
    pool: CorePool,
    waiter: Arc<Waiter>,
}

impl Ticket {
    pub(super) fn new(pool: CorePool, waiter: Arc<Waiter>) -> Self {
        Self { pool, waiter }
    }

    /// Returns the request that is waiting.
    pub fn request(&self) -> CoreRequest {
        self.waiter.request
    }

    /// Returns the lease if the request has been granted. It is returned only once. In a forked
    /// copy of the process, returns `None`.
    pub fn try_take(&mut self) -> Option<CoreLease> {
        if self.pool.shared.is_copy() {
            return None;
        }
        let grant = self.waiter.try_take()?;
        Some(CoreLease::new(&self.pool.shared, self.waiter.request, grant))
    }

    /// Blocks until the request is granted or `timeout` elapses. The position in the queue is kept.
    /// In a forked copy of the process, returns at once.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<CoreLease> {
        if self.pool.shared.is_copy() {
            return None;
        }
        // A deadline too far away to be represented never passes.
        let grant = self.waiter.wait(Instant::now().checked_add(timeout))?;
        Some(CoreLease::new(&self.pool.shared, self.waiter.request, grant))
    }

    /// Blocks until the request is granted.
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
        // Once out of the queue, it can no longer be granted cores.
        if let Some(grant) = self.waiter.try_take() {
            self.pool.shared.release(&grant.taken);
        }
    }
}

brigade_sys::debug_fields!(impl Ticket { |it| request: it.waiter.request });
