//! Parks the threads that wake each other in turn.

use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Instant;

use brigade_sys::nearby;

/// Parks a thread, which wakes up on the core of the thread that wakes it if possible.
#[derive(Debug, Clone)]
pub(crate) struct Parker {
    thread: ThreadId,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Nearby(Arc<nearby::Parker>),
    Anywhere(thread::Thread),
}

impl Parker {
    /// Returns a parker for this thread. Unless `is_nearby`, the kernel chooses the core.
    pub(crate) fn new(is_nearby: bool) -> Self {
        let nearby = is_nearby.then(nearby::Parker::of_this_thread).flatten();
        let thread = thread::current();
        let id = thread.id();
        Self { thread: id, kind: nearby.map_or(Kind::Anywhere(thread), Kind::Nearby) }
    }

    pub(crate) fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Parks this thread until `unpark`, or until the deadline; it may wake up spuriously.
    pub(crate) fn park(&self, deadline: Option<Instant>) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return;
        }
        match (&self.kind, left) {
            (Kind::Nearby(parker), left) => parker.park(left),
            (Kind::Anywhere(_), Some(left)) => thread::park_timeout(left),
            (Kind::Anywhere(_), None) => thread::park(),
        }
    }

    pub(crate) fn unpark(&self) {
        match &self.kind {
            Kind::Nearby(parker) => parker.unpark(),
            Kind::Anywhere(thread) => thread.unpark(),
        }
    }
}
