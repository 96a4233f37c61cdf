//! User code that waits for a thread to run on.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use brigade_sys::sync::{Condvar, Mutex};
use brigade_wire::TaskId;

use crate::cores::CoreLease;

/// A piece of user code to call.
pub(in crate::drive) enum UserCode {
    /// With the task that it waits for, if it is a single one.
    Waker(Option<TaskId>, Waker),
    /// Dropping a lease may call the hook of code that waits for cores.
    Lease(Arc<CoreLease>),
}

/// User code that waits for the collector thread.
#[derive(Default)]
pub(in crate::drive) struct UserCodeQueue {
    /// `true` while the queue is not empty; written under the lock.
    pub(in crate::drive) has_some: AtomicBool,
    /// Nothing that panics runs under this lock.
    state: Mutex<State>,
    added: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<UserCode>,
    ended: bool,
}

impl UserCodeQueue {
    /// Returns the user code if the collector thread has ended.
    pub(in crate::drive) fn push(&self, user_code: Vec<UserCode>) -> Option<Vec<UserCode>> {
        let mut state = self.state.lock();
        if state.ended {
            return Some(user_code);
        }
        state.waiting.extend(user_code);
        self.has_some.store(true, Ordering::Release);
        self.added.notify_one();
        None
    }

    pub(in crate::drive) fn take(&self) -> Vec<UserCode> {
        let mut state = self.state.lock();
        self.has_some.store(false, Ordering::Release);
        mem::take(&mut state.waiting)
    }

    /// Waits for user code, on a collector thread that has nothing else to do. Returns `false` when
    /// there will be no more.
    pub(in crate::drive) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.waiting.is_empty() && !state.ended {
            state = self.added.wait(state);
        }
        !state.waiting.is_empty()
    }

    /// Closes the queue.
    pub(in crate::drive) fn end(&self) {
        self.state.lock().ended = true;
        self.added.notify_one();
    }
}
