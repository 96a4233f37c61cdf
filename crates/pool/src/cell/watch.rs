//! Who waits for the outcome of a task.

use std::sync::Arc;
use std::task::Waker;

use brigade_wire::TaskId;

use crate::arrivals::Arrivals;
use crate::awaited::Sleeper;
use crate::callbacks::{Callback, Callbacks};

/// Who is to be told when the outcome is there.
#[derive(Debug)]
pub(crate) struct Watch {
    task: TaskId,
    pub(super) waker: Option<Waker>,
    /// Where several tasks are waited for together, and the task's name there.
    pub(super) arrivals: Vec<(Arc<Arrivals>, u64)>,
    /// In the order of registration; put into their queue as soon as the outcome is known.
    pub(super) callbacks: Option<(Arc<Callbacks>, Vec<Callback>)>,
    /// At most one thread sleeps for this task alone: to do so takes the handle, or a unique reference to it.
    pub(super) sleeper: Option<Sleeper>,
}

/// What is still to be done for those who wait.
pub(crate) struct Told {
    /// The one who waits sleeps at the pool's doorbell and is still to be rung.
    pub(crate) at_the_doorbell: bool,
    /// Code of users, to be called where it may run.
    pub(crate) waker: Option<(TaskId, Waker)>,
}

impl Watch {
    pub(super) fn of(task: TaskId) -> Self {
        Self { task, waker: None, arrivals: Vec::new(), callbacks: None, sleeper: None }
    }

    /// Wakes those who wait, without running code of users.
    #[must_use]
    pub(crate) fn tell(self) -> Told {
        if let Some((callbacks, _)) = self.callbacks {
            callbacks.wake();
        }
        let mut at_the_doorbell = self.sleeper.is_some_and(Sleeper::wake);
        for (arrivals, name) in self.arrivals {
            at_the_doorbell |= arrivals.add(name);
        }
        Told { at_the_doorbell, waker: self.waker.map(|waker| (self.task, waker)) }
    }

    pub(crate) fn has_waker(&self) -> bool {
        self.waker.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waker.is_none()
            && self.arrivals.is_empty()
            && self.callbacks.is_none()
            && self.sleeper.is_none()
    }
}
