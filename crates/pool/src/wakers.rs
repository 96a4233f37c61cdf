//! The futures that wait for the same thing, such as the next item of a stream.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Wake, Waker};

use brigade_sys::catch_panic::catch_panic;

use crate::sync::Mutex;

/// Most wakers that are kept; beyond that, all are woken, and those that are still wanted return.
const MOST_WAKERS: usize = 64;

/// The wakers of futures that wait for any of several tasks. It is itself the waker of the tasks.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Mutex<Vec<Waker>>);

impl Wakers {
    /// Adds a waker. Returns those that have to be woken now.
    #[must_use]
    pub(crate) fn add(&self, waker: &Waker) -> Vec<Waker> {
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

    pub(crate) fn take(&self) -> Vec<Waker> {
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
