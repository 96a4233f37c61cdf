//! Somebody in the queue.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::allocator::Grant;
use crate::request::CoreRequest;

/// Called once when the grant is there.
pub(super) type Hook = Box<dyn Fn() + Send + Sync>;

pub(super) struct Waiter {
    pub(super) request: CoreRequest,
    /// Put in by whoever gave the cores back, taken out by who waits.
    grant: Mutex<Option<Grant>>,
    ready: Condvar,
    hook: Option<Hook>,
}

impl Waiter {
    pub(super) fn new(request: CoreRequest, hook: Option<Hook>) -> Self {
        Self { request, grant: Mutex::new(None), ready: Condvar::new(), hook }
    }

    pub(super) fn put(&self, grant: Grant) {
        *self.lock() = Some(grant);
    }

    pub(super) fn try_take(&self) -> Option<Grant> {
        self.lock().take()
    }

    /// Waits for the grant; without a deadline for as long as it takes.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Option<Grant> {
        let mut grant = self.lock();
        while grant.is_none() {
            grant = match deadline
                .map(|deadline| deadline.saturating_duration_since(Instant::now()))
            {
                None => self.ready.wait(grant).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => return None,
                Some(left) => {
                    self.ready.wait_timeout(grant, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        grant.take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Grant>> {
        self.grant.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells those who have got a grant: first all threads, then the hooks, none of which keeps another one from being called. No lock
/// may be held: hooks are code of users.
pub(super) fn wake(granted: Vec<Arc<Waiter>>) {
    for waiter in &granted {
        waiter.ready.notify_one();
    }
    for waiter in granted {
        let request = waiter.request;
        // Leases are given back in destructors, where a second panic would end the process. What a hook holds is dropped here too.
        let call = || {
            if let Some(hook) = &waiter.hook {
                hook();
            }
            drop(waiter);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
            tracing::error!(%request, "the hook of a waiting request panicked");
            drop_contained(panic);
        }
    }
}

/// What was thrown belongs to users as well; what its own destructor throws is forgotten.
fn drop_contained(panic: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(second);
    }
}
