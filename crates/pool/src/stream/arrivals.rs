//! Wakes the consumers of a stream, which wait in a call or as a future.
//!
//! A consumer registers, looks again, and only then sleeps. Whoever makes something available
//! stores it first and wakes all registered consumers afterwards. So a consumer either sees it or
//! is woken.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Wake, Waker};

use brigade_sys::catch_panic::catch_panic;

use crate::completion_queue::CompletionQueue;
use crate::drive::Shared;
use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::waiting::{Sleeper, Wait};

/// Most wakers that are kept; beyond that, all are woken, and those that are still wanted return.
const MOST_WAKERS: usize = 64;

/// Notifies the consumers of a stream.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Ids of finished tasks that the stream has not heard of.
    pub(super) completions: Arc<CompletionQueue>,
    /// `true` if there is an item to take, or none will come. Written under the stream's lock.
    ready: AtomicBool,
    pub(super) wakers: Arc<Wakers>,
}

/// The consumers that wait as futures. It is itself the waker of the stream's tasks.
#[derive(Debug, Default)]
pub(super) struct Wakers(Mutex<Vec<Waker>>);

impl Arrivals {
    /// Publishes, under the stream's lock, if there is something for consumers. Returns `true` if
    /// they have to be notified, without the lock.
    #[must_use]
    pub(super) fn set_ready(&self, ready: bool) -> bool {
        !self.ready.swap(ready, Ordering::AcqRel) && ready
    }

    /// Wakes all consumers. May run their wakers.
    pub(super) fn notify(&self, shared: &Shared) {
        if self.completions.wake() {
            shared.ring_caller();
        }
        shared.run_wakers(self.wakers.take());
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

impl Wakers {
    /// Adds a waker. Returns those that have to be woken now.
    #[must_use]
    pub(super) fn add(&self, waker: &Waker) -> Vec<Waker> {
        let waker = waker.clone();
        let mut wakers = self.0.lock();
        let is_new = !wakers.iter().any(|other| other.will_wake(&waker));
        let surplus = if is_new && wakers.len() >= MOST_WAKERS {
            std::mem::take(&mut *wakers)
        } else {
            Vec::new()
        };
        if is_new {
            wakers.push(waker);
        }
        drop(wakers);
        surplus
    }

    fn take(&self) -> Vec<Waker> {
        std::mem::take(&mut *self.0.lock())
    }
}

impl Wake for Wakers {
    /// A waker that panics keeps none of the others from being woken. Its panic goes on to the
    /// pool, which reports it.
    fn wake(self: Arc<Self>) {
        let panics: Vec<String> =
            self.take().into_iter().filter_map(|it| catch_panic(|| it.wake()).err()).collect();
        if let Some(message) = panics.into_iter().next() {
            resume_unwind(Box::new(message));
        }
    }
}
