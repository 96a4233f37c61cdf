//! A request in the queue.

use std::sync::Arc;
use std::time::Instant;

use brigade_sys::catch_panic::catch_panic;
use brigade_sys::sync::{Condvar, Mutex};

use crate::allocator::Grant;
use crate::request::CoreRequest;

/// Called once, when the request is granted.
pub(super) type Hook = Box<dyn Fn() + Send + Sync>;

pub(super) struct Waiter {
    pub(super) request: CoreRequest,
    /// Set by the thread that returned the cores, taken by the waiter.
    grant: Mutex<Option<Grant>>,
    ready: Condvar,
    hook: Option<Hook>,
}

impl Waiter {
    pub(super) fn new(request: CoreRequest, hook: Option<Hook>) -> Self {
        Self { request, grant: Mutex::new(None), ready: Condvar::new(), hook }
    }

    pub(super) fn put(&self, grant: Grant) {
        *self.grant.lock() = Some(grant);
    }

    pub(super) fn try_take(&self) -> Option<Grant> {
        self.grant.lock().take()
    }

    /// Blocks until the request is granted or the deadline passes; without a deadline, as long as
    /// it takes.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Option<Grant> {
        let mut grant = self.grant.lock();
        while grant.is_none() {
            grant =
                match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                    None => self.ready.wait(grant),
                    Some(left) if left.is_zero() => return None,
                    Some(left) => self.ready.wait_timeout(grant, left).0,
                };
        }
        grant.take()
    }
}

/// Wakes the waiters that were granted cores: first all threads, then the hooks. A hook that panics
/// does not keep the others from being called. The caller must hold no lock, because hooks are user
/// code.
pub(super) fn wake(granted: Vec<Arc<Waiter>>) {
    for waiter in &granted {
        waiter.ready.notify_one();
    }
    for waiter in granted {
        let request = waiter.request;
        // Leases are returned in destructors, where a second panic would abort the process. The
        // values captured by a hook are dropped here too.
        let call = || {
            if let Some(hook) = &waiter.hook {
                hook();
            }
            drop(waiter);
        };
        if catch_panic(call).is_err() {
            tracing::error!(%request, "the hook of a granted request panicked");
        }
    }
}
